"""hivemem: a self-hosted memory graph for AI agents and teams."""

__version__ = "0.1.0"
