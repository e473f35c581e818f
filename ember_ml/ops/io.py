"""Files of tensors: written on one engine, read on any."""

from __future__ import annotations

import errno as _errno
import re as _re
from typing import TYPE_CHECKING, Any

from ember_ml import backend as _backends
from ember_ml.dispatch import op
from ember_ml.dtypes import free
from ember_ml.tree import Tree
from ember_ml.types import DeviceLike

if TYPE_CHECKING:
    from pathlib import Path


@op(free, lazy=False, differentiable=False)
def save(path: object, tree: Tree, metadata: object = None) -> None:
    """Nothing; a tensor, or nested dictionaries, lists and tuples of tensors, is in a file afterwards, bit for bit.

    The suffix decides the format: ``.safetensors``, ``.npz``, or ``.npy`` for a single tensor that is not bfloat16.
    Numbers, strings, bools and ``None`` among the leaves are kept too. The file appears whole or not at all:
    after an error, such as the ``OSError`` of a full disk, the old one is there.

    Args:
        metadata: a dictionary of strings to keep in the file; ``.npy`` has no room for it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(f"{folder}/model.safetensors", {"weights": [asarray([1.0, 2.0])], "epoch": 3})
    ...     model = load(f"{folder}/model.safetensors")
    >>> model["weights"][0].tolist(), model["epoch"]
    ([1.0, 2.0], 3)
    """
    _files().save(path, tree, metadata)


@op(free, lazy=False, differentiable=False)
def load(path: object, device: DeviceLike | None = None, *, with_metadata: bool = False) -> Any:
    """What ``save`` wrote to a file, as tensors of the active engine.

    A file of another tool is a dictionary of its tensors, or one tensor if it is ``.npy``. Nothing is ever unpickled.

    Args:
        with_metadata: answer a pair: the tensors, and the dictionary of strings that the file keeps.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(f"{folder}/x.npy", asarray([1, 2], dtype="int8"))
    ...     load(f"{folder}/x.npy").tolist()
    [1, 2]
    """
    home = _backends.current()
    content = _files().read(path)
    tree = _files().rebuilt(path, content, lambda array: home.convert(array, home.dtype(array.dtype), device))
    return (tree, content.metadata) if with_metadata else tree


def _files() -> Any:
    """What reads and writes files: they are the same for every engine, and hold host arrays."""
    return _backends.load("numpy").module.io


@op(free, lazy=False, differentiable=False)
def save_checkpoint(directory_or_path: object, tree: Tree, step: int | None = None, keep: int | None = None) -> Path:
    """The path of a new numbered file that holds ``tree``.

    In a directory, files are called ``checkpoint-00000012.safetensors``; for a path with a suffix, such as
    ``run/model.npz``, they are ``run/model-00000012.npz``. The directory is made if need be.

    Args:
        step: the number; by default the one after the last, from 0 on. A file of that number is replaced.
        keep: how many files to keep, this one and those of the highest numbers; by default all.

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
    """What ``save_checkpoint`` wrote last, by number, or at ``step``; a file that it named is loaded as it is.

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
        # That is the name of one, and not of a place where there may be some.
        raise FileNotFoundError(_errno.ENOENT, "no such checkpoint", str(pattern))
    if not found or (step is not None and step not in found):
        there = f"numbers there are: {', '.join(str(number) for number in sorted(found))}" if found else "there is none"
        wanted = "checkpoint" if step is None else f"checkpoint {step}"
        raise FileNotFoundError(f"directory_or_path must hold {wanted}, got {str(directory_or_path)!r}; {there}")
    return load(found[max(found) if step is None else step])


def _pattern(place: Any) -> Path:
    """The path whose name, with a number, is that of a checkpoint."""
    from pathlib import Path

    path = Path(place)
    return path if path.suffix.lower() in _SUFFIXES and not path.is_dir() else path / "checkpoint.safetensors"


_SUFFIXES = (".safetensors", ".npz", ".npy")
_NUMBER = r"\d{8,}"


def _numbered(pattern: Path) -> dict[int, Path]:
    """The checkpoints that are there, by number."""
    name = _re.compile(rf"{_re.escape(pattern.stem)}-({_NUMBER}){_re.escape(pattern.suffix)}")
    if not pattern.parent.is_dir():
        return {}
    matches = ((name.fullmatch(path.name), path) for path in pattern.parent.iterdir())
    return {int(match[1]): path for match, path in matches if match}
