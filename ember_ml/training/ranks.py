"""Values of all ranks, and checks that they agree."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable
from typing import Any

from ember_ml import distributed, ops, tree
from ember_ml.errors import DistributedError
from ember_ml.extend import unwrap
from ember_ml.nn.tensor import wrap


def gather(value: Any, device: str | None = None) -> list[Any]:
    """Value of each rank, in order: a tree of tensors, numbers and strings. Every rank must call it.

    Args:
        device: device of the tensors that are exchanged; by default the default device.

    >>> gather({"count": 3})
    [{'count': 3}]
    """
    if distributed.size() == 1:
        return [value]
    # As EmberTensors, since native tensors of some engines lose precision when pickled.
    data = pickle.dumps(wrap(value))
    length = ops.asarray([len(data)], dtype="int64", device=device)
    lengths = distributed.all_gather(length).tolist()
    padded = data.ljust(max(lengths), b"\0")
    rows = distributed.all_gather(ops.asarray(bytearray(padded), dtype="uint8", device=device))
    flat = _bytes(rows)
    parts = (flat[rank * len(padded) :][:size] for rank, size in enumerate(lengths))
    return [unwrap(pickle.loads(part)) for part in parts]


def run_on_first(f: Callable[[], Any], device: str | None = None) -> Any:
    """Result of ``f`` on rank 0, for all ranks; if it raises an error there, all ranks do."""
    result, error = None, None
    if distributed.rank() == 0:
        try:
            result = f()
        except Exception as caught:
            error = caught
    result, message = gather((result, None if error is None else f"{type(error).__name__}: {error}"), device)[0]
    if error is not None:
        raise error
    if message is not None:
        raise DistributedError(f"rank 0 must succeed for the others to go on, got {message}")
    return result


def check_model(tensors: dict[str, Any], device: str | None = None) -> None:
    """Raise an error if a tensor of a model differs between ranks."""
    differing = _differences({path: _checksum(x) for path, x in tensors.items()}, device)
    if differing:
        shown = ", ".join(differing[:3]) + (f" and {len(differing) - 3} more" if len(differing) > 3 else "")
        raise DistributedError(
            f"Trainer: the model must be the same on all ranks at the start, got different values of {shown}; call "
            "ember_ml.ops.random.set_seed with one seed on every rank before the model is built, or load one file"
        )


def check_batch(batch: Any, count: int, device: str | None = None) -> None:
    """Raise an error if a batch, or the number of examples, differs between ranks."""
    leaves = [leaf for leaf in tree.leaves(batch) if leaf is not None]
    if _differences({"count": count, **{f"{i}": _checksum(x) for i, x in enumerate(leaves)}}, device):
        raise DistributedError(
            "Trainer: the data must be the same on all ranks, each of which takes its slice of every batch, got "
            "different ones; give each rank all of the data, in one order"
        )


def check_checkpoint(step: int | None, device: str | None = None) -> None:
    """Raise an error if ranks found checkpoints of different steps, or some of them none."""
    steps = gather(step, device)
    if len(set(steps)) > 1:
        raise DistributedError(
            f"Trainer: all ranks must read the same checkpoint, got {steps} as the numbers of their steps; all hosts "
            "must see one directory"
        )


def _checksum(x: Any) -> int:
    return zlib.crc32(_bytes(ops.asarray(x)))


def _bytes(x: Any) -> bytes:
    found: bytes = ops.to_numpy(x).tobytes()
    return found


def _differences(values: dict[str, int], device: str | None) -> list[str]:
    """Names of values that are not the same on all ranks."""
    others = gather(values, device)
    return sorted({name for other in others for name in {*values, *other} if values.get(name) != other.get(name)})
