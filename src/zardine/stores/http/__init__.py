"""Stores on web servers, for reading."""
