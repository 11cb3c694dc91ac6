"""The gateway: the tools of agents for any MCP client, over stdio and HTTP."""
