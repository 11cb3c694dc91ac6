"""The demo: seriatim's own commands, run on a workspace that ships with the package.

`workspace` is the directory `examples/conventions` of the repository, by a symbolic link.
"""
