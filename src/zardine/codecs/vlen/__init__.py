"""Codecs for elements of any length."""
