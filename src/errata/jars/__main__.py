"""``python -m errata.jars fetch|check [GROUP…]``: manage the jar cache without the rest of the command line.

``make setup`` uses it.
"""

from __future__ import annotations

import argparse
import sys

from errata.errors import ErrataError
from errata.jars import default_cache_dir, fetch_jars, list_jars, require_jars


def main(arguments: list[str] | None = None) -> int:
    """Run one of the two actions; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m errata.jars", description="The pinned jars in the user cache.")
    parser.add_argument("action", choices=("fetch", "check"), help="download what is missing, or only verify")
    parser.add_argument("group", nargs="*", help="groups of the jar list; spark if none is named")
    chosen = parser.parse_args(arguments)
    try:
        jars = list_jars(*chosen.group)
        count = len(fetch_jars(jars=jars) if chosen.action == "fetch" else require_jars(jars=jars))
    except ErrataError as error:
        print(f"error[{error.code}]: {error.message}", file=sys.stderr)
        if error.state:
            print(f"  {error.state}", file=sys.stderr)
        if error.hint:
            print(f"\nhint: {error.hint}", file=sys.stderr)
        return error.exit_code
    print(f"{count} jars verified in {default_cache_dir()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
