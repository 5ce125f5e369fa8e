"""Reading levels, or a part of one, in one state."""
