"""Harnesses: programs that drive an agent by themselves, and reach its tools by the gateway."""
