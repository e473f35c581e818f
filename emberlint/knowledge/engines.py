"""Engines of full names, and the array classes of the engines."""

from __future__ import annotations

from functools import cache

from emberlint.config import ENGINES
from emberlint.knowledge.types import HOST, TENSOR

EMBER = "ember"
BACKEND_NAMES = ("backend", "BACKEND", "backend_name", "BACKEND_NAME")  # last part of names that hold a backend's name

_TYPES = {
    "numpy.ndarray": (HOST, "numpy"),
    "numpy.typing.NDArray": (HOST, "numpy"),
    "numpy.matrix": (HOST, "numpy"),
    "torch.Tensor": (TENSOR, "torch"),
    "torch.nn.Parameter": (TENSOR, "torch"),
    "torch.nn.parameter.Parameter": (TENSOR, "torch"),
    "torch.LongTensor": (TENSOR, "torch"),
    "torch.FloatTensor": (TENSOR, "torch"),
    "torch.BoolTensor": (TENSOR, "torch"),
    "torch.IntTensor": (TENSOR, "torch"),
    "torch.DoubleTensor": (TENSOR, "torch"),
    "mlx.core.array": (TENSOR, "mlx"),
    "jax.Array": (TENSOR, "jax"),
    "jax.numpy.ndarray": (TENSOR, "jax"),
    "jax.numpy.array": (TENSOR, "jax"),
    "jaxlib.xla_extension.ArrayImpl": (TENSOR, "jax"),
    "tensorflow.Tensor": (TENSOR, "tensorflow"),
    "cupy.ndarray": (TENSOR, "cupy"),
    "ember_ml.nn.tensor.EmberTensor": (TENSOR, EMBER),
    "ember_ml.types.Tensor": (TENSOR, EMBER),
}
TYPE_NAMES = {"Tensor": EMBER, "EmberTensor": EMBER, "KerasTensor": ""}


@cache
def array_type(path: str, own: frozenset[str] = frozenset()) -> tuple[str, str] | None:
    """Kind and engine of the instances of a class, by its full name; ``None`` if they are not arrays.

    Many libraries have a class named ``Tensor``; only those of ember and of the packages in ``own`` count.
    """
    found = _TYPES.get(path)
    if found is None:
        root, last = path.partition(".")[0], path.rpartition(".")[2]
        if last in TYPE_NAMES and engine_of(path) in ("", EMBER):
            is_own = last != "Tensor" or root == "ember_ml" or root in own
            return (TENSOR, TYPE_NAMES[last]) if is_own else None
    return found


@cache
def engine_of(path: str) -> str:
    """Engine that a full name belongs to, ``ember`` for names of ember; empty for other names."""
    root = path.partition(".")[0]
    if root in ENGINES:
        return root
    if root == "ember_ml":
        return EMBER
    return ""
