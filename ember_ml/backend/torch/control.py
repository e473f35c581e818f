"""Control flow: Python decides in eager code, torch's own higher-order operators in compiled code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.compiler import is_compiling as is_traced

from ember_ml import tree as _tree
from ember_ml.backend.torch.mapping import vectorized as vectorized


def branch(pred: torch.Tensor, yes: Callable[[], Any], no: Callable[[], Any]) -> Any:
    """The answer of one of two functions, chosen when compiled code runs."""
    return torch.cond(pred.to(torch.bool), lambda: _ordered(yes(), pred), lambda: _ordered(no(), pred))


def loop(test: Callable[..., Any], step: Callable[..., Any], state: tuple[torch.Tensor, ...]) -> Any:
    """The first state that fails ``test``, where compiled code finds it out."""
    like = state[0]

    def holds(*now: torch.Tensor) -> torch.Tensor:
        answer = test(*now)
        return _tensor(answer, like).to(torch.bool)

    return torch.while_loop(holds, lambda *now: tuple(_fresh(list(step(*now)), like)), state)


def stop_gradient(x: torch.Tensor, /) -> torch.Tensor:
    return x.detach()


def _ordered(answer: Any, like: torch.Tensor) -> Any:
    """The answer with the keys of dictionaries in order: torch compares their order too."""
    if isinstance(answer, dict):
        return {key: _ordered(answer[key], like) for key in sorted(answer, key=str)}
    if isinstance(answer, list):
        return [_ordered(child, like) for child in answer]
    if isinstance(answer, tuple) and not hasattr(answer, "_fields"):
        return tuple([_ordered(child, like) for child in answer])
    return _fresh(answer, like)


def _fresh(answer: Any, like: torch.Tensor) -> Any:
    """The answer as tensors with memory of their own: torch lets no branch hand back what it was given."""
    return _tree.map(lambda leaf: None if leaf is None else _tensor(leaf, like).clone(), answer)


def _tensor(value: Any, like: torch.Tensor) -> torch.Tensor:
    return value if isinstance(value, torch.Tensor) else torch.tensor(value, device=like.device)
