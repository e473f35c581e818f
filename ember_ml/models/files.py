"""Folders of models in the layout of Hugging Face: ``config.json``, and safetensors files, with an index if several.

Errors name the file, and the tensor if there is one. Nothing is unpickled.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ember_ml.dtypes import as_dtype
from ember_ml.extend import tensor_entries, write_tensors
from emberlint import atomic

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"

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
        "hf download openai-community/gpt2 --local-dir gpt2"
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
    """All tensors of a model by name. With an index, those that it lists, which its files must have."""
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
    unlisted = [f"{tensor} in {name}" for name in shards for tensor in found[name] if table.get(tensor) != name]
    if unlisted:
        raise ValueError(f"{index} must list all tensors of its files, got none for {', '.join(unlisted)}")
    return {tensor: found[name][tensor] for tensor, name in table.items()}


def _entries(path: Path) -> dict[str, Stored]:
    return {name: Stored(path, dtype, shape) for name, (dtype, shape) in tensor_entries(path).items()}


Entries = Mapping[str, tuple[str, tuple[int, ...], Callable[[], Any]]]


def write_folder(folder: Path, config: Mapping[str, Any], entries: Entries, shard_size: int) -> None:
    """Write ``config.json`` and the tensors, in files of at most ``shard_size`` bytes, with an index of several.

    ``config.json`` is written last, so that a folder that has it is complete; files of an earlier model are removed.
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
    old = [path for path in folder.glob("model*.safetensors*") if path.name not in names and path.name != INDEX]
    for name, shard in zip(names, shards, strict=True):
        write_tensors(folder / name, shard, {"format": "pt"})
    if count > 1:
        table = {tensor: name for name, shard in zip(names, shards, strict=True) for tensor in shard}
        atomic.write(folder / INDEX, json_text({"metadata": {"total_size": sum(sizes)}, "weight_map": table}))
    else:
        (folder / INDEX).unlink(missing_ok=True)
    for path in old:
        path.unlink(missing_ok=True)
    atomic.write(folder / CONFIG, json_text(config))


def nbytes(dtype: str, shape: tuple[int, ...]) -> int:
    """Number of bytes of a tensor in a file."""
    count = as_dtype(dtype).bits // 8
    for size in shape:
        count *= size
    return count


def json_text(values: Mapping[str, Any]) -> str:
    """Text of a JSON file."""
    return json.dumps(values, indent=2) + "\n"
