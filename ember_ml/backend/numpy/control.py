"""Control flow on NumPy, which has no tracing, so Python branches and loops."""

from __future__ import annotations

from typing import Any


def stop_gradient(x: Any, /) -> Any:
    return x
