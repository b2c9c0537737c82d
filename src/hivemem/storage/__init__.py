"""Where the truth is kept: adapters of the `Store` port, one package for each database."""
