"""Stores around other stores: prefixes, counters, caches."""
