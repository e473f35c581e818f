"""Dotted module names of files."""

from __future__ import annotations

import os
from functools import cache


def module_of(path: str) -> tuple[str, str]:
    """Dotted names of a file's module and of the package that its relative imports start from."""
    folder, name = os.path.split(path)
    package = _package_at(os.getcwd(), folder)
    stem = name[:-3] if name.endswith(".py") else name
    if stem == "__init__":
        return package, package
    return (f"{package}.{stem}" if package else stem), package


@cache
def _package_at(start: str, folder: str) -> str:
    """Package of a folder that is relative to ``start``."""
    return _package(os.path.normpath(os.path.join(start, folder)))


@cache
def _package(folder: str) -> str:
    if not os.path.isfile(os.path.join(folder, "__init__.py")):
        return ""
    parent, name = os.path.split(folder)
    above = _package(parent)
    return f"{above}.{name}" if above else name
