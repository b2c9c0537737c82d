"""Two servers as processes on one PostgreSQL database."""
