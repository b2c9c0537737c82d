"""The `hivemem` command."""
