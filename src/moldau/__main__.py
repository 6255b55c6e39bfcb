"""`python -m moldau`: the `moldau` command without its script."""

from moldau.cli.main import main

main()
