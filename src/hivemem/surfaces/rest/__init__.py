"""REST over HTTP, and the one ASGI application."""
