"""Gradients of creation functions that take tensors."""

from __future__ import annotations

from typing import Any

from ember_ml.ops import manipulation, math
from ember_ml.ops.creation import arange, tril, triu


def _vander(x: Any, n: int | None = None, *, increasing: bool = False) -> Any:
    count = x.shape[0] if n is None else n
    exponents = arange(count) if increasing else manipulation.flip(arange(count))
    return math.power(manipulation.expand_dims(x, axis=-1), exponents)


RULES = {
    "full_like": (None, lambda g, out, x, value, **_: g),
    "tril": (lambda g, out, x, *, k=0: tril(g, k=k),),
    "triu": (lambda g, out, x, *, k=0: triu(g, k=k),),
    "copy": (lambda g, out, x: g,),
}

FORMULAS = {"vander": _vander}

MOVES = {"diag"}
