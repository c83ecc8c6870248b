"""``python -m errata`` is the command line."""

from errata.cli.main import main

main()
