"""What ``validate`` looks at."""
