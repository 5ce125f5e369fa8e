"""Stores in buckets, through obstore."""
