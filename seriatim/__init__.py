"""Governs the calls that LLM agents make to MCP tools."""

__version__ = "0.1.0"
