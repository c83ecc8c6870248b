"""The file that ``spark-submit`` starts: ``python -m errata`` with the arguments that follow it.

It is shipped on its own to clusters that take a file and not a module, so it imports nothing before it looks around:
started from inside the package, its own directory would otherwise stand first on the path.
"""

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    here = Path(__file__).resolve().parent
    if (here / "__init__.py").exists():
        sys.path[:] = [place for place in sys.path if Path(place or ".").resolve() != here]
    runpy.run_module("errata", run_name="__main__", alter_sys=True)
