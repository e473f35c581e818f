"""What is known not to hold, each with its reason. These lists may only shrink.

Keys of ``EXCEPTIONS`` are ``(check, operation, engine)``: the name of a test function in test_contract.py, an
operation, an engine. ``DIFFERENCES`` has the values for which an operation on an engine differs from its oracle. An
entry that holds no more is itself a failure, so that nothing stays here longer than it is true.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

OLD_COMPILER = (
    "PyTorch 2.11: the compiler cannot trace id() of code and tuples, nor attributes of views of dictionaries"
)
HAS_OLD_COMPILER = find_spec("torch") is not None and version("torch").startswith("2.11.")

# PyTorch 2.11: where the compiler stops and goes on, it reads ``.grad`` of tensors that are no leaves. It hides the
# warning, but not the error that a warning is in tests.
HIDDEN_WARNING = "ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning"

# Engines whose functions take numbers below the smallest normal one for zero, and return zero for them.
FLUSHES = {"jax": "JAX 0.10: XLA flushes subnormal numbers to zero on the CPU"}
_WITH_SUBNORMALS = ("ceil", "floor", "lgamma", "log", "log10", "log2", "rsqrt", "sign", "sqrt")

EXCEPTIONS: dict[tuple[str, str, str], str] = {
    ("test_results_are_those_of_the_reference", name, engine): reason
    for engine, reason in FLUSHES.items()
    for name in _WITH_SUBNORMALS
}
if HAS_OLD_COMPILER:
    EXCEPTIONS["test_compilers_trace_it", "random_multivariate_normal", "torch"] = OLD_COMPILER


class Difference(NamedTuple):
    """Why an engine differs, and a test of the arguments for which it does."""

    reason: str
    where: Callable[..., Any]


def _overflows(x: Any, y: Any) -> bool:
    """Whether the quotient is beyond the dtype's range."""
    with np.errstate(over="ignore"):
        return bool(y != 0 and np.isfinite(x) and not np.isfinite(x / y))


def is_subnormal(*values: Any) -> bool:
    """Whether one of the values, or a part of it, is below the smallest normal number of its dtype."""
    parts = [part for v in map(np.asarray, values) for part in ((v.real, v.imag) if v.dtype.kind == "c" else (v,))]
    return any(
        part.dtype.kind in "fV" and 0 < abs(part) < ml_dtypes.finfo(part.dtype).smallest_normal for part in parts
    )


def _is_nonfinite_complex(*values: Any) -> bool:
    return any(np.iscomplexobj(v) and not np.isfinite(v) for v in values)


def _underflows(x: Any, y: Any) -> bool:
    """Whether the quotient is below the smallest normal number."""
    with np.errstate(all="ignore"):
        return is_subnormal(x / y)


DIFFERENCES: dict[tuple[str, str], Difference] = {
    ("floor_divide", "jax"): Difference(FLUSHES["jax"], _underflows),
    ("fmod", "torch"): Difference("PyTorch 2.13: NaN where the quotient overflows", _overflows),
    ("remainder", "torch"): Difference("PyTorch 2.13: NaN where the quotient overflows", _overflows),
    ("add", "torch"): Difference("PyTorch 2.13: multiplies by alpha=1, a complex product", _is_nonfinite_complex),
    ("subtract", "torch"): Difference("PyTorch 2.13: multiplies by alpha=1, a complex product", _is_nonfinite_complex),
    ("gelu", "torch"): Difference("PyTorch 2.13: the vectorized CPU kernel gives NaN for infinity", math.isinf),
    ("digamma", "torch"): Difference("PyTorch 2.13: loses all digits next to a pole", lambda x: -1 < x < -0.999),
    ("divmod", "torch"): Difference("PyTorch 2.13: remainder is NaN where the quotient overflows", _overflows),
    ("erf", "mlx"): Difference(
        "MLX 0.32: the float32 kernel rounds what is below its epsilon to zero, and 0.0 to -0.0",
        lambda x: abs(x) < 1e-6,
    ),
}
