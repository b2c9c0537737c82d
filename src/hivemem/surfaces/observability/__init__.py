"""What an operator sees of a running server: metrics, access log, traces."""
