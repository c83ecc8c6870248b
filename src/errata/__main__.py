"""``python -m errata`` is the command line."""

import sys

from errata.cli.main import run_program

sys.exit(run_program())
