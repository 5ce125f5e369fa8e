"""Nodes in a store: finding, placing, creating and moving them, updating their documents."""
