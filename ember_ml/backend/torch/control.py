"""Control flow on torch: Python branches in eager code, higher-order operators in compiled code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.compiler import is_compiling as is_traced

from ember_ml import tree as _tree
from ember_ml.backend.torch.mapping import vectorized as vectorized


def branch(pred: torch.Tensor, yes: Callable[[], Any], no: Callable[[], Any]) -> Any:
    """Result of one of two functions, chosen when compiled code runs."""
    return torch.cond(pred.to(torch.bool), lambda: _sort_keys(yes(), pred), lambda: _sort_keys(no(), pred))


def loop(test: Callable[..., Any], step: Callable[..., Any], state: tuple[torch.Tensor, ...]) -> Any:
    """First state that fails ``test``, found when compiled code runs."""
    like = state[0]

    def holds(*now: torch.Tensor) -> torch.Tensor:
        result = test(*now)
        return _tensor(result, like).to(torch.bool)

    return torch.while_loop(holds, lambda *now: tuple(_copy(list(step(*now)), like)), state)


def stop_gradient(x: torch.Tensor, /) -> torch.Tensor:
    return x.detach()


def _sort_keys(result: Any, like: torch.Tensor) -> Any:
    """``result`` with dictionary keys sorted: torch requires the same order in both branches."""
    if isinstance(result, dict):
        return {key: _sort_keys(result[key], like) for key in sorted(result, key=str)}
    if isinstance(result, list):
        return [_sort_keys(child, like) for child in result]
    if isinstance(result, tuple) and not hasattr(result, "_fields"):
        return tuple([_sort_keys(child, like) for child in result])
    return _copy(result, like)


def _copy(result: Any, like: torch.Tensor) -> Any:
    """``result`` as tensors that share no memory with the inputs, as torch requires of a branch."""
    return _tree.map(lambda leaf: None if leaf is None else _tensor(leaf, like).clone(), result)


def _tensor(value: Any, like: torch.Tensor) -> torch.Tensor:
    return value if isinstance(value, torch.Tensor) else torch.tensor(value, device=like.device)
