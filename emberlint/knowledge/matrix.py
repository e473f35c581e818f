"""The measured matrix, as ``ember-ml ops measure`` writes it: which operation, dtype and keyword is the same on which
engine.

``ember_ml/tools/__init__.py`` describes the file. The configured one is read, else the one that comes with ember.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from emberlint.config import Config, ConfigError
from emberlint.source import files
from emberlint.source.schema import Each, Fields, fault

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
_OWN = os.path.join(_ROOT, "ember_ml", "tools", "matrix.lock.json")
FORMAT = 1
_MEASURED = Fields(
    {"status": str, "dtypes": Each(str), "keywords": Each(str)}, {"differences": [Fields({"input": str})]}
)
_NATIVE = Fields({}, {"keywords": dict, "parameters": list})
SHAPE = Fields({"operations": Each(Fields({"engines": Each(_MEASURED)}))}, {"native": Each(Each(_NATIVE))})


def path_of(config: Config) -> str:
    """The file that a configuration means; empty if there is none."""
    return os.path.join(config.root, config.matrix) if config.matrix else _own()


@cache
def _own() -> str:
    return _OWN if os.path.isfile(_OWN) else ""


def load(config: Config) -> dict[str, Any] | None:
    """The matrix of a configuration; ``None`` if nothing has been measured."""
    path = path_of(config)
    return _read(path) if path else None


@cache
def _read(path: str) -> dict[str, Any]:
    try:
        matrix = files.read_json(path)
    except (OSError, ValueError) as error:
        raise ConfigError(f"the matrix {path} cannot be read: {error}") from error
    if not isinstance(matrix, dict) or matrix.get("format") != FORMAT:
        raise ConfigError(f"{path} is no matrix of format {FORMAT}; `ember-ml ops measure` writes one")
    wrong = fault(matrix, SHAPE, "matrix") if path != _OWN else ""
    if wrong:
        raise ConfigError(f"{path}: {wrong}")
    return matrix


def native(path: str, place: str) -> dict[str, Any] | None:
    """What a matrix says of an engine's function, compared with the operation of its name: ``numpy.sum``."""
    if not place:
        return None
    found: dict[str, Any] | None = _read(place).get("native", {}).get(path.partition(".")[0], {}).get(path)
    return found
