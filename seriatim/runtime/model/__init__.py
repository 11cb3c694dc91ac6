"""The model executor: conversations with models, their turns, and scripts in their place."""
