"""The MCP servers of a run: reached, kept, called, and let go."""
