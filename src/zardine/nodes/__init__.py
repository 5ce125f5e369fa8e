"""Arrays and groups, their asynchronous faces, and the functions that create them."""
