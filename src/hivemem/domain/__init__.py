"""Values and pure rules of the memory graph. Standard library only, no I/O, no clock."""
