"""What ``verify`` looks at, one kind of object in each file."""
