"""Control flow on MLX: Python branches on computed values; ``mx.compile`` and ``mx.vmap`` compute both branches."""

from __future__ import annotations

from typing import Any

import mlx.core as mx

from ember_ml import tree as _tree
from ember_ml.backend.mlx.core import check_memory
from ember_ml.backend.mlx.mapping import vectorized as vectorized


def stop_gradient(x: mx.array, /) -> mx.array:
    return mx.stop_gradient(x)


def eval(*trees: Any) -> Any:
    arrays = [leaf for leaf in _tree.leaves(trees) if isinstance(leaf, mx.array)]
    for x in arrays:
        check_memory(x.shape, x.dtype)
    mx.eval(arrays)
    return trees[0] if len(trees) == 1 else trees
