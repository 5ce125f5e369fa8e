"""Files of other programs, each kind in a module of its own."""
