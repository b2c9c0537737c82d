"""Use cases: what a caller can do with a memory graph. They own the transactions."""
