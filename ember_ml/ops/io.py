"""Files of tensors: written on any engine, readable on every other."""

from __future__ import annotations

import errno as _errno
import re as _re
from os import fspath as _fspath
from typing import TYPE_CHECKING, Any

from ember_ml import backend as _backends
from ember_ml.dispatch import is_tensor as _is_tensor
from ember_ml.dispatch import op
from ember_ml.dtypes import free
from ember_ml.ops._files import host_files as _host_files
from ember_ml.ops.creation import asarray
from ember_ml.tree import Tree
from ember_ml.types import DeviceLike

if TYPE_CHECKING:
    from pathlib import Path


@op(free, lazy=False, differentiable=False)
def save(path: object, tree: Tree, metadata: object = None) -> None:
    """Write a tensor, or nested dictionaries, lists and tuples of tensors, to a file.

    The suffix selects the format: ``.safetensors``, ``.npz``, or ``.npy`` for a single tensor that is not bfloat16.
    Tensors are preserved bit for bit; numbers, strings, bools and ``None`` among the leaves are preserved too. The file
    is replaced atomically: after an error, such as an ``OSError`` for a full disk, the old file is unchanged.

    Args:
        metadata: a dictionary of strings to store in the file; ``.npy`` does not support it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(f"{folder}/model.safetensors", {"weights": [asarray([1.0, 2.0])], "epoch": 3})
    ...     model = load(f"{folder}/model.safetensors")
    >>> model["weights"][0].tolist(), model["epoch"]
    ([1.0, 2.0], 3)
    """
    _host_files().save(path, tree, metadata)


@op(free, lazy=False, differentiable=False)
def load(path: object, device: DeviceLike | None = None, *, with_metadata: bool = False) -> Any:
    """Contents of a file that ``save`` wrote, as tensors of the active backend.

    A file written by another tool gives a dictionary of its tensors, or one tensor for ``.npy``. Nothing is unpickled.

    Args:
        device: the device of the tensors, by default the default device.
        with_metadata: return a pair of the contents and the dictionary of strings stored with them.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(f"{folder}/x.npy", asarray([1, 2], dtype="int8"))
    ...     load(f"{folder}/x.npy").tolist()
    [1, 2]
    """
    backend = _backends.current()
    content = _host_files().read(path)
    tree = _host_files().rebuilt(
        path, content, lambda array: backend.convert(array, backend.dtype(array.dtype), device)
    )
    return (tree, content.metadata) if with_metadata else tree


def savez(path: Any, /, *arrays: Any, **named: Any) -> None:
    """Write several tensors to an ``.npz`` file, which ``load`` and ``numpy.load`` read as a dictionary.

    ``.npz`` is added to a path without it. Tensors without names are called ``arr_0``, ``arr_1`` and so on. See
    ``save`` for other formats and nested containers.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     savez(f"{folder}/data", asarray([1.0, 2.0]), y=asarray([3]))
    ...     {name: x.tolist() for name, x in load(f"{folder}/data.npz").items()}
    {'arr_0': [1.0, 2.0], 'y': [3]}
    """
    place = str(_fspath(path))
    given = {f"arr_{i}": array for i, array in enumerate(arrays)}
    both = ", ".join(name for name in named if name in given)
    if both:
        raise ValueError(f"savez: a tensor must have a name of its own, got {both} twice")
    contents = {name: x if _is_tensor(x) else asarray(x) for name, x in {**given, **named}.items()}
    save(place if place.endswith(".npz") else f"{place}.npz", contents)


@op(free, lazy=False, differentiable=False)
def save_checkpoint(directory_or_path: object, tree: Tree, step: int | None = None, keep: int | None = None) -> Path:
    """Path of a new numbered file to which ``tree`` has been written.

    In a directory, files are called ``checkpoint-00000012.safetensors``. For a path with a suffix, such as
    ``run/model.npz``, they are called ``run/model-00000012.npz``. The directory is created if necessary.

    Args:
        step: the number, by default one more than the last, starting from 0. An existing file of that number is
            replaced.
        keep: how many files to keep, this one and those with the highest numbers; by default all.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_checkpoint(folder, {"x": asarray([1.0])}, step=12).name
    'checkpoint-00000012.safetensors'
    """
    if keep is not None and keep < 1:
        raise ValueError(f"keep must be >= 1, got {keep}")
    pattern = _pattern(directory_or_path)
    found = _numbered(pattern)
    number = (max(found, default=-1) + 1) if step is None else step
    if number < 0:
        raise ValueError(f"step must be >= 0, got {number}")
    path = pattern.with_name(f"{pattern.stem}-{number:08d}{pattern.suffix}")
    path.parent.mkdir(parents=True, exist_ok=True)
    save(path, tree)
    if keep is not None:
        others = sorted((n, other) for n, other in _numbered(pattern).items() if n != number)
        for _, old in others[: max(0, len(others) - keep + 1)]:
            old.unlink(missing_ok=True)
    return path


@op(free, lazy=False, differentiable=False)
def load_checkpoint(directory_or_path: object, step: int | None = None) -> Any:
    """Contents of the checkpoint with the highest number, or with number ``step``.

    The path of a checkpoint file loads that file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     paths = [save_checkpoint(folder, {"x": asarray(float(i))}, keep=2) for i in (1, 2, 3)]
    ...     load_checkpoint(folder)["x"].tolist(), load_checkpoint(folder, step=1)["x"].tolist()
    (3.0, 2.0)
    """
    pattern = _pattern(directory_or_path)
    if step is None and pattern.is_file():
        return load(pattern)
    found = _numbered(pattern)
    if step is None and not found and _re.search(rf"-{_NUMBER}$", pattern.stem):
        # The name is that of one checkpoint, not of a directory of them.
        raise FileNotFoundError(_errno.ENOENT, "no such checkpoint", str(pattern))
    if not found or (step is not None and step not in found):
        there = f"numbers there are: {', '.join(str(number) for number in sorted(found))}" if found else "there is none"
        wanted = "a checkpoint" if step is None else f"checkpoint {step}"
        raise FileNotFoundError(f"directory_or_path must hold {wanted}, got {str(directory_or_path)!r}; {there}")
    return load(found[max(found) if step is None else step])


def _pattern(place: Any) -> Path:
    """Path from which names of checkpoints are derived by appending a number to the stem."""
    from pathlib import Path

    path = Path(place)
    return path if path.suffix.lower() in _SUFFIXES and not path.is_dir() else path / "checkpoint.safetensors"


_SUFFIXES = (".safetensors", ".npz", ".npy")
_NUMBER = r"\d{8,}"


def _numbered(pattern: Path) -> dict[int, Path]:
    """Existing checkpoints by number."""
    name = _re.compile(rf"{_re.escape(pattern.stem)}-({_NUMBER}){_re.escape(pattern.suffix)}")
    if not pattern.parent.is_dir():
        return {}
    matches = ((name.fullmatch(path.name), path) for path in pattern.parent.iterdir())
    return {int(match[1]): path for match, path in matches if match}
