"""The measured matrix, as ``ember-ml ops measure`` writes it: which operation, dtype and keyword is the same on which
engine.

``ember_ml/tools/__init__.py`` describes the file. The configured one is read, else the one that comes with ember.
"""

from __future__ import annotations

import json
import os
from functools import cache
from typing import Any

from emberlint.config import Config, ConfigError

_OWN = os.path.join(os.path.dirname(os.path.dirname(__file__)), "ember_ml", "tools", "matrix.lock.json")
FORMAT = 1


@cache
def path_of(config: Config) -> str:
    """The file that a configuration means; empty if there is none."""
    if config.matrix:
        return os.path.join(config.root, config.matrix)
    return _OWN if os.path.isfile(_OWN) else ""


@cache
def load(config: Config) -> dict[str, Any] | None:
    """The matrix of a configuration; ``None`` if nothing has been measured."""
    path = path_of(config)
    return _read(path) if path else None


@cache
def _read(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            matrix = json.load(file)
    except (OSError, ValueError) as error:
        raise ConfigError(f"the matrix {path} cannot be read: {error}") from error
    if not isinstance(matrix, dict) or matrix.get("format") != FORMAT:
        raise ConfigError(f"{path} is no matrix of format {FORMAT}; `ember-ml ops measure` writes one")
    return matrix


def native(path: str, config: Config) -> dict[str, Any] | None:
    """What was measured of an engine's function beside the operation of its name, by full name: ``numpy.sum``."""
    matrix = load(config)
    if matrix is None:
        return None
    found: dict[str, Any] | None = matrix.get("native", {}).get(path.partition(".")[0], {}).get(path)
    return found
