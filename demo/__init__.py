"""A demonstration: hivemem remembers its own sources and decisions, and answers questions about them."""
