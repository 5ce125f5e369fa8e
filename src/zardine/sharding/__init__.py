"""Shards as bytes: index, layout, putting encoded inner chunks together. No I/O."""
