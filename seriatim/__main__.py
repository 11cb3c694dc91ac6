"""`python -m seriatim` is the command `seriatim`."""

from seriatim.cli.main import main

main()
