"""The measured matrix: whether an operation, a dtype or a keyword has the reference result on an engine.

``ember-ml ops measure`` writes the file, and ``ember_ml/tools/__init__.py`` describes it. The default is the file that
comes with ember.
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
    """Path of the matrix of a configuration; empty if there is none."""
    return os.path.join(config.root, config.matrix) if config.matrix else _own()


@cache
def _own() -> str:
    return _OWN if os.path.isfile(_OWN) else ""


def load(config: Config) -> dict[str, Any] | None:
    """Matrix of a configuration; ``None`` if there is none."""
    path = path_of(config)
    return _read(path) if path else None


@cache
def _read(path: str) -> dict[str, Any]:
    try:
        matrix = files.read_json(path)
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot read the matrix {path}: {error}") from error
    if not isinstance(matrix, dict) or matrix.get("format") != FORMAT:
        raise ConfigError(f"{path} must be a matrix of format {FORMAT}; write one with `ember-ml ops measure`")
    wrong = fault(matrix, SHAPE, "matrix") if path != _OWN else ""
    if wrong:
        raise ConfigError(f"{path}: {wrong}")
    return matrix


def native(path: str, place: str) -> dict[str, Any] | None:
    """Measured comparison of an engine's function (``numpy.sum``) with the operation of the same name."""
    if not place:
        return None
    found: dict[str, Any] | None = _read(place).get("native", {}).get(path.partition(".")[0], {}).get(path)
    return found
