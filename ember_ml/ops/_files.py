"""Files of tensors as other libraries lay them out, read without copies where the engine can."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

from ember_ml import backend as _backends
from ember_ml.ops.creation import asarray
from ember_ml.types import DeviceLike, Tensor
from emberlint import atomic

StrPath = str | PathLike[str]


def host_files() -> Any:
    """Module that reads and writes files as NumPy arrays, for every engine; no operation of NumPy is bound for it."""
    return _backends.host_module("io")


def tensor_entries(path: StrPath) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Dtypes and shapes of the tensors of a safetensors file, by name, without reading them.

    A ``ValueError`` names the file, and the tensor that does not fit it.
    """
    files = host_files()
    with files.naming_file(path):
        return {
            name: (files.SAFE[entry["dtype"]], tuple(entry["shape"]))
            for name, entry in files.read_header(Path(path)).entries.items()
        }


def map_tensors(path: StrPath, device: DeviceLike | None = None) -> dict[str, Tensor]:
    """Tensors of a safetensors file as views of the file in memory, or that are read when they are needed.

    They are tensors of the active backend if it has a reader of its own for all dtypes of the file, otherwise NumPy
    arrays.
    """
    backend = _backends.current()
    files, own = host_files(), _backends.submodule(backend.module, "io")
    with files.naming_file(path):
        read = getattr(own, "map_tensors", files.map_tensors)
        unread: frozenset[str] = getattr(own, "UNREAD", frozenset())
        if unread and any(dtype in unread for dtype, _ in tensor_entries(path).values()):
            read = files.map_tensors
        found: dict[str, Tensor] = read(path, backend.device if device is None else backend.find_device(device))
        return found


def from_view(array: Any, device: DeviceLike | None = None) -> Tensor:
    """Tensor of the active backend, from a tensor of ``map_tensors`` for that device or what was computed from it.

    ``asarray`` copies host arrays first for engines that may share their memory, since others may change them; nothing
    changes these.
    """
    backend = _backends.current()
    found: Tensor = array
    if not isinstance(array, backend.kinds):
        own = getattr(_backends.submodule(backend.module, "io"), "from_view", None)
        if own is None:
            found = asarray(array, device=device)
        else:
            found = own(array, backend.device if device is None else backend.find_device(device))
    return found


def write_tensors(
    path: StrPath | BinaryIO,
    entries: Mapping[str, tuple[str, tuple[int, ...], Callable[[], Any]]],
    metadata: Mapping[str, str],
) -> None:
    """Replace a safetensors file atomically; each tensor is made when it is written, so one at a time is in memory.

    Args:
        path: path of the file, or a file that is open for writing.
        entries: by name, the dtype and the shape of a tensor, and a function that returns it, on any engine.
        metadata: strings to store in the file.
    """
    files = host_files()
    with atomic.replacing(path) if isinstance(path, str | PathLike) else nullcontext(path) as file:
        files.write_entries(file, {name: files.Entry(*entry) for name, entry in entries.items()}, metadata)
