"""A draw from an engine's global random state.

## What it does
Finds `np.random.seed`, `np.random.rand`, `torch.manual_seed`, `torch.randn`, `mx.random.seed`, `mx.random.normal`
without a key, and similar functions.

## Why
Each engine has its own hidden state and its own numbers. They change with the engine, with threads, and with every draw
elsewhere in the program.

## Example
```python
import numpy as np


def noise(x: np.ndarray) -> np.ndarray:
    return x + np.random.normal(size=3)
```

## Use instead
```python
from ember_ml import ops
from ember_ml.types import Tensor


def noise(x: Tensor, seed: int) -> Tensor:
    return x + ops.random.normal(3, key=ops.random.key(seed))
```

## Fix safety
No fix: the numbers change. `ops.random` draws the same numbers on every engine, from a key or from one stream.
"""

from __future__ import annotations

import ast

from emberlint.inference.callees import keyword
from emberlint.inference.file import File
from emberlint.knowledge.engines import engine_of
from emberlint.rules import Rule

RULE = Rule("EMB312", "global-random-state", "global random state")

# Functions of numpy.random that do not use the global state.
_EXPLICIT = frozenset({"default_rng", "get_bit_generator"})
_TORCH = frozenset(
    [
        "manual_seed",
        "seed",
        "rand",
        "randn",
        "randint",
        "randperm",
        "rand_like",
        "randn_like",
        "randint_like",
        "normal",
        "bernoulli",
        "multinomial",
        "poisson",
    ]
)


def _draws(name: str) -> bool:
    """Whether a function may use global random state."""
    root, _, rest = name.partition(".")
    return (root in ("numpy", "torch", "mlx", "tensorflow") and "random" in rest) or (
        root == "torch" and (rest in _TORCH or rest.endswith(("manual_seed", "manual_seed_all")))
    )


@RULE.on(ast.Call, named=_draws)
def check(node: ast.Call, file: File) -> None:
    """Report calls that draw from or set global random state."""
    path = file.path(node.func)
    if not path or file.allowed is not None or not _is_global(path, node):
        return
    message = f"`{file.text(node.func)}` uses {_owner(path)} global random state; use `ops.random` with a key"
    file.report(RULE, node.func, message)


def _is_global(path: str, node: ast.Call) -> bool:
    root, _, rest = path.partition(".")
    space, _, name = rest.rpartition(".")
    if root == "numpy":
        return space == "random" and name not in _EXPLICIT and not name[:1].isupper()
    if root == "torch":
        if rest in ("random.manual_seed", "random.seed", "cuda.manual_seed", "cuda.manual_seed_all", "mps.manual_seed"):
            return True
        return not space and name in _TORCH and keyword(node, "generator") is None
    if root == "mlx":
        return space == "core.random" and name not in ("key", "split") and keyword(node, "key") is None
    return root == "tensorflow" and (
        rest == "random.set_seed" or (space == "random" and not name.startswith("stateless"))
    )


def _owner(path: str) -> str:
    return {"numpy": "NumPy's", "torch": "torch's", "mlx": "MLX's"}.get(engine_of(path), "the engine's")
