"""Values of all ranks, and checks that they agree."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable
from typing import Any

from ember_ml import distributed, ops
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
    flat = ops.to_numpy(rows).tobytes()
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


def check_equal(tensors: dict[str, Any], device: str | None = None) -> None:
    """Raise an error if a tensor differs between ranks."""
    sums = {path: zlib.crc32(ops.to_numpy(x).tobytes()) for path, x in tensors.items()}
    others = gather(sums, device)
    differing = sorted({path for other in others for path in {*sums, *other} if sums.get(path) != other.get(path)})
    if differing:
        shown = ", ".join(differing[:3]) + (f" and {len(differing) - 3} more" if len(differing) > 3 else "")
        raise DistributedError(
            f"Trainer: the model must be the same on all ranks at the start, got different values of {shown}; call "
            "ember_ml.ops.random.set_seed with one seed on every rank before the model is built, or load one file"
        )
