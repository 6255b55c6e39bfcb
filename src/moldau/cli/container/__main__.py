"""`python -m moldau.cli.container`: the entry that the image's small shell scripts call."""

import sys

from moldau.cli.container.commands import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
