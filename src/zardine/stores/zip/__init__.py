"""Stores in zip files, safe to be written by many processes."""
