"""The dotted names of files, from the packages that they are in."""

from __future__ import annotations

import os
from functools import cache


def module_of(path: str) -> tuple[str, str]:
    """The dotted names of a file's module and of the package that relative imports in it start from."""
    folder, name = os.path.split(path)
    package = _package_at(os.getcwd(), folder)
    stem = name[:-3] if name.endswith(".py") else name
    if stem == "__init__":
        return package, package
    return (f"{package}.{stem}" if package else stem), package


@cache
def _package_at(start: str, folder: str) -> str:
    """The package of a folder, as seen from another."""
    return _package(os.path.normpath(os.path.join(start, folder)))


@cache
def _package(folder: str) -> str:
    if not os.path.isfile(os.path.join(folder, "__init__.py")):
        return ""
    parent, name = os.path.split(folder)
    above = _package(parent)
    return f"{above}.{name}" if above else name
