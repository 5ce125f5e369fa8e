"""Storing nodes and cells so that readers find the old or the new ones."""
