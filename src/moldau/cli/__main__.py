"""`python -m moldau.cli`: the command line without an installed script."""

from moldau.cli.main import main

main()
