"""Stores on the file systems of fsspec."""
