"""REST, MCP and the command line: translate, call a use case, translate back."""
