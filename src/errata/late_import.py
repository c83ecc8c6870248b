"""Import a module when it is first used, for packages of which a command needs only a part."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def build_late_import(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package: ``homes`` maps each name to the module that defines it.

    A name that is itself a module of the package maps to the empty text.
    """

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        return getattr(import_module(f"{package}.{home}"), name) if home else import_module(f"{package}.{name}")

    return find
