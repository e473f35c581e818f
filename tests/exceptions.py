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

import numpy as np

OLD_COMPILER = (
    "PyTorch 2.11: the compiler cannot trace id() of code and tuples, nor attributes of views of dictionaries"
)
HAS_OLD_COMPILER = find_spec("torch") is not None and version("torch").startswith("2.11.")

EXCEPTIONS: dict[tuple[str, str, str], str] = (
    {("test_compilers_trace_it", "random_multivariate_normal", "torch"): OLD_COMPILER} if HAS_OLD_COMPILER else {}
)


class Difference(NamedTuple):
    """Why an engine differs, and a test of the arguments for which it does."""

    reason: str
    where: Callable[..., Any]


def _overflows(x: Any, y: Any) -> bool:
    """Whether the quotient is beyond the dtype's range."""
    with np.errstate(over="ignore"):
        return bool(y != 0 and np.isfinite(x) and not np.isfinite(x / y))


def _is_nonfinite_complex(*values: Any) -> bool:
    return any(np.iscomplexobj(v) and not np.isfinite(v) for v in values)


DIFFERENCES: dict[tuple[str, str], Difference] = {
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
