"""Reads a workspace, says what is wrong with it, and resolves what is right."""
