"""A process that exits at once with code 3; it prints its arguments, or a complaint, on stderr."""

import sys

sys.stderr.write("warming up\n" + (" ".join(sys.argv[1:]) or "cannot open the database") + "\n\n")
sys.exit(3)
