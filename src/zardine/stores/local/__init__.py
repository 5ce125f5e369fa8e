"""Stores in folders of this machine, safe to be written by many processes."""
