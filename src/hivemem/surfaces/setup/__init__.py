"""Connecting agents: edits of their files that leave every other byte alone, and can be undone."""
