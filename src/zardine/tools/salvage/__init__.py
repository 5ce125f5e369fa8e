"""Getting out of a damaged shard what is readable in it. Pure."""
