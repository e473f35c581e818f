"""``torch.vmap``, which takes one slice after the other where it has no rule, and warns that it does.

That is what our own are documented to do, and nothing that a user could mend: so it is not said while they run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._C import _functorch

# The functions that are being mapped now, in any thread.
_mapped: list[Callable[..., Any]] = []


def vectorized(f: Callable[..., Any], in_axes: Any = 0, randomness: str = "error") -> Callable[..., Any]:
    """``f`` for each slice of its arguments along their axes, the answers stacked along the first."""
    over = torch.vmap(f, in_dims=in_axes, randomness=randomness)

    def run(*args: Any) -> Any:
        if torch.compiler.is_compiling():
            return over(*args)
        _mapped.append(f)
        _set_warning(False)
        try:
            return over(*args)
        finally:
            _mapped.pop()
            if not _mapped:
                _set_warning(True)

    return run


# Not there in every version of torch, whose warnings are a matter of its own.
_set_warning: Callable[[bool], None] = getattr(_functorch, "_set_vmap_fallback_warning_enabled", lambda is_told: None)
