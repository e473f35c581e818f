"""Folders of models in the layout of Hugging Face: ``config.json``, and safetensors files, with an index if several.

Errors name the file, and the tensor if there is one. Nothing is unpickled.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from ember_ml.dtypes import as_dtype
from ember_ml.extend import tensor_entries, write_tensors
from emberlint import atomic

CONFIG = "config.json"
GENERATION = "generation_config.json"
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"

# Files of weights that are written, and so removed when another model replaces theirs.
_WRITTEN = re.compile(r"model(-\d{5}-of-\d{5})?\.safetensors")

# Files of other libraries that hold pickles, or weights for other programs.
_REFUSED = (
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
    "tf_model.h5",
    "flax_model.msgpack",
    "model.ckpt.index",
)
_PICKLED = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")


class Stored(NamedTuple):
    """Tensor in a file: its file, dtype and shape."""

    path: Path
    dtype: str
    shape: tuple[int, ...]


def locate(folder_or_file: str | os.PathLike[str]) -> tuple[Path, list[Path], Path | None]:
    """Folder of a model, its files of weights, and its index if it has one."""
    place = Path(folder_or_file)
    if not place.exists():
        raise absent("load: folder_or_file", place)
    if place.is_dir():
        if (place / INDEX).is_file() and not (place / WEIGHTS).is_file():
            return place, [], place / INDEX
        if (place / WEIGHTS).is_file():
            return place, [place / WEIGHTS], None
        raise _no_weights(place)
    if place.name.endswith(".index.json"):
        return place.parent, [], place
    if place.suffix in _PICKLED:
        raise ValueError(_pickled(place))
    if place.suffix != ".safetensors":
        raise ValueError(f"folder_or_file must be a folder, a .safetensors file or its index, got {str(place)!r}")
    return place.parent, [place], None


def absent(what: str, place: Path) -> FileNotFoundError:
    """Error for a folder or file of a model that does not exist."""
    return FileNotFoundError(
        f"{what} must be a folder or file that exists, got {str(place)!r}; download a model first, such as: "
        "hf download openai-community/gpt2 config.json model.safetensors tokenizer.json --local-dir gpt2"
    )


def _pickled(path: Path) -> str:
    return (
        f"{path} is not read: it may hold a pickle, which can run any program. Convert it with transformers, on a "
        "machine where that is no harm: AutoModel.from_pretrained(folder).save_pretrained(other_folder)"
    )


def _no_weights(folder: Path) -> Exception:
    """Error for a folder without weights, or with weights that are not read."""
    refused = [folder / name for name in _REFUSED if (folder / name).exists()]
    refused += [path for path in sorted(folder.iterdir()) if path.suffix in _PICKLED and path not in refused]
    if refused:
        return ValueError(_pickled(refused[0]))
    return FileNotFoundError(f"{folder} must have {WEIGHTS} or {INDEX}, got neither")


def read_config(folder: Path) -> dict[str, Any]:
    """Entries of the ``config.json`` of a folder."""
    path = folder / CONFIG
    if not path.is_file():
        raise FileNotFoundError(f"{folder} must have {CONFIG}, which says what the model is, got none")
    return read_json(path)


def read_generation(folder: Path) -> dict[str, Any] | None:
    """Entries of the ``generation_config.json`` of a folder, if it has one."""
    path = folder / GENERATION
    return read_json(path) if path.is_file() else None


def read_json(path: Path) -> dict[str, Any]:
    """JSON object in a file."""
    try:
        values = json.loads(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path} must be JSON, got {error}") from error
    if not isinstance(values, dict):
        raise ValueError(f"{path} must be a JSON object, got {type(values).__name__}")
    return values


def find_tensors(paths: list[Path], index: Path | None) -> dict[str, Stored]:
    """All tensors of a model by name. With an index, those that it lists, which its files must have, and no others."""
    if index is None:
        return {name: stored for path in paths for name, stored in _entries(path).items()}
    table = read_json(index).get("weight_map")
    if not isinstance(table, dict) or not all(isinstance(name, str) for name in table.values()):
        raise ValueError(f"{index}: weight_map must be an object of file names by tensor, got {table!r}")
    wrong = sorted({name for name in table.values() if name != os.path.basename(name) or not name})
    if wrong:
        raise ValueError(f"{index}: weight_map must name files in the same folder, got {', '.join(wrong)}")
    shards = sorted(set(table.values()))
    absent = [name for name in shards if not (index.parent / name).is_file()]
    if absent:
        example = next(tensor for tensor, name in table.items() if name == absent[0])
        raise FileNotFoundError(
            f"{index} names files that do not exist: {', '.join(absent)}; the first should have the tensor {example}"
        )
    pickled = [name for name in shards if not name.endswith(".safetensors")]
    if pickled:
        raise ValueError(_pickled(index.parent / pickled[0]))
    found = {name: _entries(index.parent / name) for name in shards}
    lost = [f"{tensor} in {name}" for tensor, name in table.items() if tensor not in found[name]]
    if lost:
        raise ValueError(f"{index} lists tensors that their files do not have: {', '.join(lost)}")
    return {tensor: found[name][tensor] for tensor, name in table.items()}


def _entries(path: Path) -> dict[str, Stored]:
    return {name: Stored(path, dtype, shape) for name, (dtype, shape) in tensor_entries(path).items()}


Entries = Mapping[str, tuple[str, tuple[int, ...], Callable[[], Any]]]


def write_folder(
    folder: Path, config: Mapping[str, Any], generation: Mapping[str, Any] | None, entries: Entries, shard_size: int
) -> None:
    """Write a model, with its tensors in files of at most ``shard_size`` bytes, and an index of several.

    All files are written under other names first, so that a full disk leaves the folder as it was. At every moment,
    the folder has the model that it had, the new one, or none that ``load`` takes.

    Args:
        generation: entries of ``generation_config.json``; without them, the file stays as it is.
    """
    folder.mkdir(parents=True, exist_ok=True)
    shards: list[dict[str, Any]] = [{}]
    sizes = [0]
    for name, entry in entries.items():
        size = nbytes(entry[0], entry[1])
        if sizes[-1] and sizes[-1] + size > shard_size:
            shards.append({})
            sizes.append(0)
        shards[-1][name] = entry
        sizes[-1] += size
    count = len(shards)
    names = [WEIGHTS] if count == 1 else [f"model-{i + 1:05d}-of-{count:05d}.safetensors" for i in range(count)]
    texts = {CONFIG: json_text(config)} | ({} if generation is None else {GENERATION: json_text(generation)})
    is_other = any(_content(folder / name) != text.encode() for name, text in texts.items())
    if count > 1:
        table = {tensor: name for name, shard in zip(names, shards, strict=True) for tensor in shard}
        texts[INDEX] = json_text({"metadata": {"total_size": sum(sizes)}, "weight_map": table})
    # The stack replaces the files that were staged last first: the weights, their index, then config.json.
    with ExitStack() as stack:
        for name, text in texts.items():
            with _staged(stack, folder / name) as file:
                file.write(text.encode())
        for name, shard in zip(names, shards, strict=True):
            with _staged(stack, folder / name) as file:
                write_tensors(file, shard, {"format": "pt"})
        # Without config.json, new weights cannot be taken for those of an earlier one; without an index, a mixture of
        # old and new files cannot be taken for a model.
        if is_other:
            (folder / CONFIG).unlink(missing_ok=True)
        (folder / INDEX).unlink(missing_ok=True)
        for path in list(folder.iterdir()):
            if _WRITTEN.fullmatch(path.name) and path.name not in names:
                path.unlink(missing_ok=True)


@contextmanager
def _staged(stack: ExitStack, path: Path) -> Iterator[BinaryIO]:
    """File on the disk that replaces ``path`` when ``stack`` is closed, unless something fails before."""
    file = stack.enter_context(atomic.replacing(path))
    yield file
    file.flush()
    os.fsync(file.fileno())
    file.close()


def _content(path: Path) -> bytes | None:
    with suppress(FileNotFoundError):
        return path.read_bytes()
    return None


def nbytes(dtype: str, shape: tuple[int, ...]) -> int:
    """Number of bytes of a tensor in a file."""
    count = as_dtype(dtype).bits // 8
    for size in shape:
        count *= size
    return count


def json_text(values: Mapping[str, Any]) -> str:
    """Text of a JSON file."""
    return json.dumps(values, indent=2) + "\n"
