"""Files of tensors: the formats, and the structure of nested containers within them.

A file holds named arrays, and a note in JSON that says how they were nested and which stand for another dtype: complex
values are pairs of reals in safetensors, bfloat16 is its bits in ``.npz``. A file without such a note is a flat
dictionary.
"""

from __future__ import annotations

import errno
import json
import os
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from ember_ml import backend as backends
from ember_ml import dispatch
from ember_ml.backend.numpy.core import DTYPES, parse
from ember_ml.dtypes import as_dtype, with_article, written
from ember_ml.errors import UnsupportedError
from emberlint import atomic

Array = np.ndarray[Any, Any]

# The entry of a file's metadata that holds the note.
_NOTE = "ember_ml"
_NOTE_ARRAY = "__ember_ml__"


class Content(NamedTuple):
    """What is in a file: named arrays, the note on their structure if there is one, and metadata."""

    arrays: dict[str, Array]
    note: Any
    metadata: dict[str, str]


def save(path: object, tree: object, metadata: object = None) -> None:
    target = Path(os.fspath(path))  # type: ignore[call-overload]
    write = _format(target)[0]
    arrays: dict[str, Array] = {}
    note = _described(tree, (), arrays)
    content = Content(arrays, note, _checked_metadata(metadata))
    with atomic.replacing(target) as file:
        write(file, content)


def load(path: object, device: str | None = None, *, with_metadata: bool = False) -> Any:
    content = read(path)
    tree = rebuilt(path, content, lambda array: array)
    return (tree, content.metadata) if with_metadata else tree


def read(path: object) -> Content:
    """What is in the file; an error that names it if it is damaged, or in another format than its name says."""
    source = Path(os.fspath(path))  # type: ignore[call-overload]
    reader = _format(source)[1]
    with _reading(source):
        content: Content = reader(source)
        return content


def rebuilt(path: object, content: Content, lift: Callable[[Array], Any]) -> Any:
    """The nested containers of a file, with ``lift`` of its arrays in their places."""
    arrays = content.arrays
    with _reading(path):
        if content.note is None:
            tree: Any = {"dict": [[name, {"tensor": name}] for name in arrays]}
        else:
            tree = content.note
        return _nested(tree, arrays, lift)


@contextmanager
def _reading(path: object) -> Iterator[None]:
    """Whatever a damaged or foreign file leads to is a ``ValueError`` that names the file."""
    try:
        yield
    except UnsupportedError:
        raise
    except Exception as error:
        # A damaged offset asks for an invalid place in the file; any other error of the system is its own.
        if isinstance(error, OSError) and error.errno != errno.EINVAL:
            raise
        suffix = os.path.splitext(os.fspath(path))[1]  # type: ignore[call-overload]
        reason = str(error) or type(error).__name__
        raise ValueError(
            f"path must be a {suffix} file, got {str(path)!r}, which is damaged or something else ({reason})"
        ) from error


def _checked_metadata(metadata: Any) -> dict[str, str]:
    if metadata is None:
        return {}
    if not isinstance(metadata, dict) or not all(isinstance(s, str) for pair in metadata.items() for s in pair):
        raise TypeError(f"metadata must be a dictionary of strings, got {written(metadata)}")
    if _NOTE in metadata:
        raise ValueError(f"the keys of metadata must not be {_NOTE!r}, which is reserved")
    return dict(metadata)


def _described(tree: Any, path: tuple[Any, ...], arrays: dict[str, Array]) -> dict[str, Any]:
    """The note on ``tree``; its tensors go into ``arrays`` under names that tell where they were."""
    if isinstance(tree, dict):
        pairs = []
        for key, child in tree.items():
            if not isinstance(key, (str, int, float, bool, type(None))):
                raise TypeError(f"the keys of dictionaries must be strings or numbers, got {key!r}")
            pairs.append([key, _described(child, (*path, key), arrays)])
        return {"dict": pairs}
    if isinstance(tree, (list, tuple)):
        kind = "list" if isinstance(tree, list) else "tuple"
        return {kind: [_described(child, (*path, i), arrays) for i, child in enumerate(tree)]}
    if tree is None or type(tree) in (bool, int, float, str):
        return {"value": tree}
    if type(tree) is complex:
        return {"complex": [tree.real, tree.imag]}
    name = _name(path, arrays)
    arrays[name] = _hosted(tree, path)
    return {"tensor": name}


def _name(path: tuple[Any, ...], taken: dict[str, Array]) -> str:
    """A name of its own for the tensor at ``path``: the keys, joined by dots."""
    plain = ".".join(map(str, path))
    if not plain or not plain.isprintable():
        plain = "tensor"
    name, count = plain, 1
    while name in taken or name in ("__metadata__", _NOTE_ARRAY):
        count += 1
        name = f"{plain}#{count}"
    return name


def _hosted(value: Any, path: tuple[Any, ...]) -> Array:
    """A tensor of any engine as a host array in the order of its axes."""
    owner = dispatch.classify(type(value))
    if isinstance(owner, backends.Backend):
        owner.dtype_of(value)
        return np.asarray(owner.to_host(value), order="C")
    if owner == dispatch.HOST:
        return np.asarray(parse(value, None), order="C")
    place = f" at {'.'.join(map(str, path))}" if path else ""
    raise TypeError(
        "the values of tree must be tensors, numbers, strings and nested containers of them, got "
        f"{with_article(_type(value))}{place}"
    )


def _type(value: Any) -> str:
    return type(value).__name__


def _nested(note: Any, arrays: dict[str, Array], lift: Callable[[Array], Any]) -> Any:
    """The tree that a note is about."""
    ((kind, what),) = [(key, note[key]) for key in note if key != "dtype"]
    if kind == "tensor":
        array = arrays[what]
        return lift(_restored(array, note["dtype"]) if "dtype" in note else array)
    if kind == "dict":
        return {key: _nested(child, arrays, lift) for key, child in what}
    if kind in ("list", "tuple"):
        children = [_nested(child, arrays, lift) for child in what]
        return children if kind == "list" else tuple(children)
    if kind == "complex":
        return complex(*what)
    if kind != "value":
        raise ValueError(f"its note must name a container, got {kind}")
    return what


def _disguised(content: Content, disguise: Callable[[Array], Array]) -> tuple[dict[str, Array], str]:
    """Arrays as a format can hold them, and the note as JSON, with the dtype of those that are not themselves."""
    arrays: dict[str, Array] = {}
    dtypes: dict[str, str] = {}
    for name, array in content.arrays.items():
        arrays[name] = disguise(array)
        if arrays[name].dtype != array.dtype:
            dtypes[name] = as_dtype(array.dtype).name

    def noted(note: Any) -> Any:
        (kind, what) = next(iter(note.items()))
        if kind == "dict":
            return {"dict": [[key, noted(child)] for key, child in what]}
        if kind in ("list", "tuple"):
            return {kind: [noted(child) for child in what]}
        return {**note, "dtype": dtypes[what]} if kind == "tensor" and what in dtypes else note

    return arrays, json.dumps(noted(content.note))


def _restored(array: Array, dtype: str) -> Array:
    """The values of ``dtype`` that were disguised as ``array``."""
    own = DTYPES[dtype]
    if own.kind == "c":
        return np.ascontiguousarray(array).view(own).reshape(array.shape[:-1])
    return array.view(own)


def _as_reals(array: Array) -> Array:
    if array.dtype.kind != "c":
        return array
    real = np.dtype(f"f{array.dtype.itemsize // 2}")
    return array.reshape(*array.shape, 1).view(real)


def _as_bits(array: Array) -> Array:
    return array.view(np.uint16) if array.dtype == DTYPES["bfloat16"] else array


# The names that safetensors gives to dtypes.
_SAFE = {
    "BOOL": "bool", "I8": "int8", "I16": "int16", "I32": "int32", "I64": "int64", "U8": "uint8", "U16": "uint16",
    "U32": "uint32", "U64": "uint64", "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64",
    "C64": "complex64",
}  # fmt: skip
_SAFE_NAMES = {dtype: name for name, dtype in _SAFE.items()}


# The largest header that the safetensors library reads.
_LARGEST_HEADER = 100_000_000


def _write_safetensors(file: BinaryIO, content: Content) -> None:
    # The library's own writer has a temporary file of its own, which stays if the process is killed, and an error class
    # of its own for a full disk.
    arrays, note = _disguised(content, _as_reals)
    # The library writes the widest dtypes first, so that all values are aligned.
    names = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))
    header: dict[str, Any] = {"__metadata__": {**content.metadata, _NOTE: note}}
    end = 0
    for name in names:
        array = arrays[name]
        begin, end = end, end + array.nbytes
        dtype = _SAFE_NAMES[as_dtype(array.dtype).name]
        header[name] = {"dtype": dtype, "shape": array.shape, "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > _LARGEST_HEADER:
        raise ValueError(f"save: a .safetensors file must have a header of at most 100 MB, got {len(text)} bytes")
    file.write(len(text).to_bytes(8, "little"))
    file.write(text)
    for name in names:
        file.write(_buffer(arrays[name]))


def _buffer(array: Array) -> memoryview:
    """The bytes of a contiguous array, without a copy."""
    return array.reshape(-1).view(np.uint8).data


def _read_safetensors(path: Path) -> Content:
    from safetensors import safe_open

    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        if size > min(_LARGEST_HEADER, os.fstat(file.fileno()).st_size - 8):
            raise ValueError(f"the header must fit into the file and 100 MB, got a length of {size} bytes")
        # The library takes time that is quadratic in the number of duplicates, so they are looked for first.
        header = json.loads(file.read(size), object_pairs_hook=_unique)
        # The library checks the rest; its reader for NumPy has no bfloat16, so the values are read here.
        with safe_open(path, framework="numpy"):
            pass
        metadata = header.pop("__metadata__", None) or {}
        arrays = {name: _values(file, 8 + size, name, entry) for name, entry in header.items()}
    note = metadata.pop(_NOTE, None)
    return Content(arrays, None if note is None else json.loads(note), metadata)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The dictionary of the pairs of a JSON object; ``ValueError`` if a key is there twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = Counter(key for key, _ in pairs)
        key, count = keys.most_common(1)[0]
        raise ValueError(f"keys of the header must be unique, got {key!r} {count} times")
    return found


def _values(file: BinaryIO, start: int, name: str, entry: dict[str, Any]) -> Array:
    if entry["dtype"] not in _SAFE:
        raise ValueError(f"{name} must have a dtype that tensors have, got {entry['dtype']}")
    dtype = DTYPES[_SAFE[entry["dtype"]]]
    begin, end = entry["data_offsets"]
    array = np.empty(entry["shape"], dtype)
    if array.nbytes != end - begin:
        raise ValueError(f"{name} must have {array.nbytes} bytes, got {end - begin}")
    file.seek(start + begin)
    if array.nbytes and file.readinto(array.reshape(-1).view(np.uint8)) != array.nbytes:  # type: ignore[attr-defined]
        raise ValueError(f"{name} must end within the file")
    return array


def _write_npy(file: BinaryIO, content: Content) -> None:
    if set(content.note) != {"tensor"}:
        raise TypeError("a .npy file must hold one tensor, got a container; save containers as .safetensors or .npz")
    if content.metadata:
        raise ValueError("metadata must be None for a .npy file; use .safetensors or .npz")
    (array,) = content.arrays.values()
    if array.dtype == DTYPES["bfloat16"]:
        raise UnsupportedError("a .npy file must not hold bfloat16; use .safetensors or .npz")
    np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
    # NumPy writes arrays through a C stream, whose errors have no errno.
    file.write(_buffer(array))


def _read_npy(path: Path) -> Content:
    with open(path, "rb") as file:
        array = _array("the tensor", file)
        if file.read(1):
            raise ValueError("it must end after its tensor, got more bytes")
    return Content({"tensor": array}, {"tensor": "tensor"}, {})


def _write_npz(file: BinaryIO, content: Content) -> None:
    arrays, note = _disguised(content, _as_bits)
    text = json.dumps({"tree": note, "metadata": content.metadata}).encode()
    arrays[_NOTE_ARRAY] = np.frombuffer(text, np.uint8)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)


def _read_npz(path: Path) -> Content:
    arrays: dict[str, Array] = {}
    with zipfile.ZipFile(path) as archive:
        for entry in archive.namelist():
            if not entry.endswith(".npy"):
                raise ValueError(f"{entry} in it must be an array")
            with archive.open(entry) as file:
                arrays[entry.removesuffix(".npy")] = _array(entry, file)
                # Reading to the end is what checks the sum of the bytes.
                if file.read(1):
                    raise ValueError(f"{entry} in it must end after its array, got more bytes")
    if _NOTE_ARRAY not in arrays:
        return Content(arrays, None, {})
    kept = json.loads(arrays.pop(_NOTE_ARRAY).tobytes())
    return Content(arrays, json.loads(kept["tree"]), kept["metadata"])


def _array(name: str, file: Any) -> Array:
    """An array from a file of NumPy's own format, in the machine's byte order; objects are refused."""
    array = np.lib.format.read_array(file, allow_pickle=False)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype not in DTYPES.values():
        raise ValueError(f"{name} must have a dtype that tensors have, got {array.dtype}")
    return np.asarray(array, order="C")


_FORMATS: dict[str, tuple[Callable[[BinaryIO, Content], None], Callable[[Path], Content]]] = {
    ".safetensors": (_write_safetensors, _read_safetensors),
    ".npz": (_write_npz, _read_npz),
    ".npy": (_write_npy, _read_npy),
}


def _format(path: Path) -> tuple[Callable[[BinaryIO, Content], None], Callable[[Path], Content]]:
    found = _FORMATS.get(path.suffix.lower())
    if found is None:
        raise ValueError(f"the suffix of path must be one of {', '.join(_FORMATS)}, got {str(path)!r}")
    return found
