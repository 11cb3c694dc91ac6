"""Governs the calls that LLM agents make to MCP tools."""
