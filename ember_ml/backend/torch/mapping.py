"""``torch.vmap`` without its warning about operations that it runs slice by slice.

That fallback is documented for our ``vmap``, and users cannot act on the warning.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._C import _functorch

# Functions being mapped now, in any thread.
_mapped: list[Callable[..., Any]] = []


def vectorized(f: Callable[..., Any], in_axes: Any = 0, randomness: str = "error") -> Callable[..., Any]:
    """``f`` for each slice of its arguments along their axes, with the results stacked along the first axis."""
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


# Private in torch, and missing in some versions, which then warn.
_set_warning: Callable[[bool], None] = getattr(_functorch, "_set_vmap_fallback_warning_enabled", lambda enabled: None)
