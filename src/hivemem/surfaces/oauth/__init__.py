"""The OAuth 2.1 authorization server: metadata, registration, sign-in pages, tokens."""
