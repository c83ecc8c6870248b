"""``python -m errata`` is the command line."""

import sys

from errata.cli.main import main

sys.exit(main())
