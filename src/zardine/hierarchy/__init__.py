"""Nodes in a store: finding them, placing them, updating their documents."""
