"""Parameters, gradients and optimizer state that are divided over the ranks, each of which holds a part."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import Any

from ember_ml import distributed, ops, tree
from ember_ml.errors import UnsupportedError
from ember_ml.extend import current_backend
from ember_ml.optim import Grouped

# Bytes of the parts that are exchanged at once.
BUCKET_BYTES = 25_000_000

# Engines whose users divide models.
ENGINES = ("torch", "jax")

Tensors = dict[str, Any]


class Sharding:
    """A model and the state of its optimizer and callbacks, which are divided over the ranks while it is trained.

    A parameter is flattened, padded with zeros to a multiple of the number of ranks, and cut into that many parts.
    Parts and whole tensors are exchanged in buckets. Parameters that are not trained, and buffers, stay whole.

    Args:
        strategy: ``"sharded"``, or ``"replicated"`` to divide nothing.
    """

    def __init__(self, strategy: str, model: Any, optimizer: Any, callbacks: Sequence[Any]) -> None:
        if strategy not in ("replicated", "sharded"):
            raise ValueError(f"Trainer: strategy must be 'replicated' or 'sharded', got {strategy!r}")
        self.strategy, self.model, self.optimizer, self.callbacks = strategy, model, optimizer, callbacks
        for one in _optimizers(optimizer) if strategy == "sharded" else ():
            if not one.is_elementwise:
                raise UnsupportedError(
                    "Trainer: the optimizer must update each element by itself for strategy='sharded', got "
                    f"{type(one).__name__}"
                )
        self.size = distributed.size()
        # Whole shapes of the parameters; empty if nothing is divided. The model is whole between two runs.
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.is_model_divided = False

    def divide(self) -> None:
        """Keep this rank's parts of the parameters, of the state of the optimizer, and of that of callbacks."""
        if self.strategy == "replicated":
            return
        name = current_backend().name
        if name not in ENGINES:
            raise UnsupportedError(
                f"Trainer: strategy='sharded' must be used with one of the backends {', '.join(ENGINES)}, got {name}; "
                "with strategy='replicated', each rank has the whole model"
            )
        if self.size == 1:
            return
        whole = self.model.parameters()
        self.shapes = {path: tuple(x.shape) for path, x in whole.items()}
        parts = {path: self._part(path, x) for path, x in whole.items()}
        if isinstance(self.optimizer, Grouped) and self.optimizer.choose(whole) != self.optimizer.choose(parts):
            self.shapes = {}
            raise UnsupportedError(
                "Trainer: the groups of the optimizer must depend on paths alone for strategy='sharded', got groups "
                "that depend on shapes"
            )
        self.model.assign(parts)
        self.is_model_divided = True
        self.optimizer.convert_state(self._part, True)
        self._convert_callbacks(self._part)

    def join_model(self) -> None:
        """Give each rank the whole parameters, if they are divided."""
        if self.is_model_divided:
            self.model.assign(self._whole(self.model.parameters()))
            self.is_model_divided = False
            self._convert_callbacks(self._joined)

    def join(self) -> None:
        """Give each rank the whole parameters and the whole state of the optimizer, if they are divided."""
        self.join_model()
        if self.shapes:
            self.optimizer.convert_state(self._joined, False)
            self.shapes = {}

    @contextmanager
    def whole_model(self) -> Iterator[None]:
        """Context manager in which the model has its whole parameters."""
        if not self.is_model_divided:
            yield
            return
        parts = self.model.parameters()
        self.model.assign(self._whole(parts))
        try:
            yield
        finally:
            self.model.assign(parts)

    def average(self, gradients: Tensors) -> Tensors:
        """This rank's parts of the means of gradients over all ranks."""
        found: Tensors = {}
        for paths in _buckets(gradients, self.size):
            padded = [ops.reshape(self._padded(path, gradients[path]), (self.size, -1)) for path in paths]
            flat = ops.reshape(ops.concatenate(padded, axis=1), (-1,))
            part = ops.multiply(distributed.reduce_scatter(flat), 1 / self.size)
            found.update(zip(paths, _split(part, [self._length(path) for path in paths]), strict=True))
        return found

    def joined_on_host(self, content: Tensors) -> Tensors:
        """Whole tensors of the model, the optimizer and the callbacks of a checkpoint, in host memory of rank 0.

        They are joined one after the other, so that no device has to hold all of them.
        """
        if not self.shapes:
            return {}
        state = {}
        for key, x in content["optimizer"].items():
            rest = key.partition(".")[2] if isinstance(self.optimizer, Grouped) else key
            state[key] = self._on_host(rest.rpartition(".")[0], x)
        return {
            "model": {path: self._on_host(path, x) for path, x in content["model"].items()},
            "optimizer": state,
            "callbacks": _map_paths(self._on_host, content["callbacks"]),
        }

    def _on_host(self, path: str, x: Any) -> Any:
        joined = self._joined(path, x)
        return x if joined is x else ops.to_numpy(joined) if distributed.rank() == 0 else None

    def _joined(self, path: str, x: Any) -> Any:
        """Whole tensor from the part of each rank; a tensor that is no part stays as it is."""
        if path not in self.shapes or tuple(x.shape) != (self._length(path),):
            return x
        return self._shaped(path, distributed.all_gather(x))

    def _whole(self, parts: Tensors) -> Tensors:
        """Whole parameters from the parts of each rank."""
        found: Tensors = {}
        for paths in _buckets(parts, 1):
            joined = distributed.all_gather(ops.concatenate([parts[path] for path in paths]))
            rows = ops.reshape(joined, (self.size, -1))
            for path, columns in zip(paths, _split(rows, [self._length(path) for path in paths]), strict=True):
                found[path] = self._shaped(path, columns)
        return found

    def _part(self, path: str, x: Any) -> Any:
        """This rank's part of a tensor with the shape of a parameter; a tensor of another shape stays as it is."""
        if path not in self.shapes or tuple(x.shape) != self.shapes[path]:
            return x
        length = self._length(path)
        # A copy, so that the whole tensor is freed.
        return ops.copy(self._padded(path, x)[distributed.rank() * length :][:length])

    def _length(self, path: str) -> int:
        return -(-math.prod(self.shapes[path]) // self.size)

    def _padded(self, path: str, x: Any) -> Any:
        flat = ops.reshape(x, (-1,))
        return ops.pad(flat, (0, self._length(path) * self.size - flat.shape[0]))

    def _shaped(self, path: str, x: Any) -> Any:
        """Tensor of the shape of a parameter, without the padding."""
        shape = self.shapes[path]
        return ops.reshape(ops.reshape(x, (-1,))[: math.prod(shape)], shape)

    def _convert_callbacks(self, convert: Callable[[str, Any], Any]) -> None:
        for callback in self.callbacks:
            state = callback.state()
            new = _map_paths(convert, state)
            if any(a is not b for a, b in zip(tree.leaves(new), tree.leaves(state), strict=True)):
                callback.restore(new)


def _map_paths(f: Callable[[str, Any], Any], state: Any) -> Any:
    """State of a callback, with ``f(key, tensor)`` for the tensors of its dictionaries."""
    if isinstance(state, dict):
        return {key: f(key, x) if ops.is_tensor(x) else _map_paths(f, x) for key, x in state.items()}
    return [_map_paths(f, x) for x in state] if isinstance(state, list) else state


def _optimizers(optimizer: Any) -> list[Any]:
    return [one for _, one in optimizer.groups] if isinstance(optimizer, Grouped) else [optimizer]


def _buckets(tensors: Tensors, ranks: int) -> Iterator[list[str]]:
    """Names of tensors of one dtype that are exchanged at once, in the same order on every rank."""
    names: list[str] = []
    size = 0
    for name, x in sorted(tensors.items(), key=lambda item: ops.dtype(item[1]).name):
        dtype = ops.dtype(x)
        if names and (size >= BUCKET_BYTES or ops.dtype(tensors[names[0]]) != dtype):
            yield names
            names, size = [], 0
        names.append(name)
        size += math.prod(x.shape) * dtype.bits // 8 // ranks
    if names:
        yield names


def _split(x: Any, lengths: list[int]) -> list[Any]:
    """Consecutive parts of the last axis of ``x``, of these lengths."""
    begins = accumulate(lengths, initial=0)
    return [x[..., begin : begin + length] for begin, length in zip(begins, lengths, strict=False)]
