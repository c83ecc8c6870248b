"""Find what workers need on the machine that starts them: Python, the entry file, the jars."""

from __future__ import annotations

import sys
from importlib.resources import files

from errata.jars import default_cache_dir
from errata.submit.job import LocalMachine


def find_here() -> LocalMachine:
    """Paths on this machine."""
    application = str(files("errata.submit").joinpath("application.py"))
    return LocalMachine(sys.executable, application, str(default_cache_dir()))
