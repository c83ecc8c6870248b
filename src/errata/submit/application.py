"""The entry file for ``spark-submit``: runs ``python -m errata`` with its arguments.

It is shipped alone to clusters that take a file instead of a module. If it is started from inside the package, its
directory is removed from ``sys.path`` before Errata is imported, because it would otherwise come first.
"""

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    here = Path(__file__).resolve().parent
    if (here / "__init__.py").exists():
        sys.path[:] = [place for place in sys.path if Path(place or ".").resolve() != here]
    runpy.run_module("errata", run_name="__main__", alter_sys=True)
