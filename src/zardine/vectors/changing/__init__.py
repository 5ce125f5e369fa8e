"""Changing stores: creating, appending, editing, levels."""
