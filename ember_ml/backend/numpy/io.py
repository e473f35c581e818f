"""Tensor files: the formats, and the structure of nested containers in them.

A file holds named arrays, and a note in JSON that says how they were nested and which are encoded in another dtype:
complex values are pairs of reals in safetensors, bfloat16 is stored as its bits in ``.npz``. A file without such a note
is a flat dictionary.
"""

from __future__ import annotations

import errno
import json
import math
import mmap
import os
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
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

# Key of the note in the metadata of a file.
_NOTE = "ember_ml"
_NOTE_ARRAY = "__ember_ml__"


class Content(NamedTuple):
    """Content of a file: named arrays, the note on their structure if there is one, and metadata."""

    arrays: dict[str, Array]
    note: Any
    metadata: dict[str, str]


def save(path: object, tree: object, metadata: object = None) -> None:
    target = Path(os.fspath(path))  # type: ignore[call-overload]
    write = _format(target)[0]
    arrays: dict[str, Array] = {}
    note = _describe(tree, (), arrays)
    content = Content(arrays, note, _check_metadata(metadata))
    with atomic.replacing(target) as file:
        write(file, content)


def load(path: object, device: str | None = None, *, with_metadata: bool = False) -> Any:
    content = read(path)
    tree = rebuilt(path, content, lambda array: array)
    return (tree, content.metadata) if with_metadata else tree


def read(path: object) -> Content:
    """Content of the file, or an error that names it if it is damaged or not in the format of its suffix."""
    source = Path(os.fspath(path))  # type: ignore[call-overload]
    reader = _format(source)[1]
    with naming_file(source):
        content: Content = reader(source)
        return content


def rebuilt(path: object, content: Content, convert: Callable[[Array], Any]) -> Any:
    """Nested containers of a file, with each array passed through ``convert``."""
    arrays = content.arrays
    with naming_file(path):
        if content.note is None:
            tree: Any = _flat(arrays)
        else:
            tree = content.note
        return _rebuild(tree, arrays, convert)


def _flat(arrays: dict[str, Array]) -> dict[str, Any]:
    """Note on a dictionary of the arrays under their names."""
    return {"dict": [[name, {"tensor": name}] for name in arrays]}


@contextmanager
def naming_file(path: object) -> Iterator[None]:
    """Raise a ``ValueError`` that names the file for any error caused by a damaged or foreign file."""
    try:
        yield
    except UnsupportedError:
        raise
    except Exception as error:
        # A damaged offset gives EINVAL; other system errors are raised unchanged.
        if isinstance(error, OSError) and error.errno != errno.EINVAL:
            raise
        suffix = os.path.splitext(os.fspath(path))[1]  # type: ignore[call-overload]
        reason = str(error) or type(error).__name__
        raise ValueError(
            f"path must be a {suffix} file, got {str(path)!r}, which is damaged or something else ({reason})"
        ) from error


def _check_metadata(metadata: Any) -> dict[str, str]:
    if metadata is None:
        return {}
    if not isinstance(metadata, dict) or not all(isinstance(s, str) for pair in metadata.items() for s in pair):
        raise TypeError(f"metadata must be a dictionary of strings, got {written(metadata)}")
    if _NOTE in metadata:
        raise ValueError(f"the keys of metadata must not be {_NOTE!r}, which is reserved")
    return dict(metadata)


def _describe(tree: Any, path: tuple[Any, ...], arrays: dict[str, Array]) -> dict[str, Any]:
    """Note on ``tree``; adds its tensors to ``arrays`` under names that say where they were."""
    if isinstance(tree, dict):
        pairs = []
        for key, child in tree.items():
            if not isinstance(key, (str, int, float, bool, type(None))):
                raise TypeError(f"the keys of dictionaries must be strings or numbers, got {key!r}")
            pairs.append([key, _describe(child, (*path, key), arrays)])
        return {"dict": pairs}
    if isinstance(tree, (list, tuple)):
        kind = "list" if isinstance(tree, list) else "tuple"
        return {kind: [_describe(child, (*path, i), arrays) for i, child in enumerate(tree)]}
    if tree is None or type(tree) in (bool, int, float, str):
        return {"value": tree}
    if type(tree) is complex:
        return {"complex": [tree.real, tree.imag]}
    name = _name(path, arrays)
    arrays[name] = _to_host(tree, path)
    return {"tensor": name}


def _name(path: tuple[Any, ...], taken: dict[str, Array]) -> str:
    """Unique name for the tensor at ``path``: the keys, joined by dots."""
    plain = ".".join(map(str, path))
    if not plain or not plain.isprintable():
        plain = "tensor"
    name, count = plain, 1
    while name in taken or name in ("__metadata__", _NOTE_ARRAY):
        count += 1
        name = f"{plain}#{count}"
    return name


def _to_host(value: Any, path: tuple[Any, ...]) -> Array:
    """Tensor of any engine as a C-contiguous host array."""
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


def _rebuild(note: Any, arrays: dict[str, Array], convert: Callable[[Array], Any]) -> Any:
    """Tree that a note describes."""
    ((kind, what),) = [(key, note[key]) for key in note if key != "dtype"]
    if kind == "tensor":
        array = arrays[what]
        return convert(_decode(array, note["dtype"]) if "dtype" in note else array)
    if kind == "dict":
        return {key: _rebuild(child, arrays, convert) for key, child in what}
    if kind in ("list", "tuple"):
        children = [_rebuild(child, arrays, convert) for child in what]
        return children if kind == "list" else tuple(children)
    if kind == "complex":
        return complex(*what)
    if kind != "value":
        raise ValueError(f"its note must name a container, got {kind}")
    return what


def _encode(content: Content, encode: Callable[[Array], Array]) -> tuple[dict[str, Array], str]:
    """Arrays encoded in dtypes that the format supports, and the note as JSON with the dtypes of encoded arrays."""
    arrays: dict[str, Array] = {}
    dtypes: dict[str, str] = {}
    for name, array in content.arrays.items():
        arrays[name] = encode(array)
        if arrays[name].dtype != array.dtype:
            dtypes[name] = as_dtype(array.dtype).name

    def annotate(note: Any) -> Any:
        (kind, what) = next(iter(note.items()))
        if kind == "dict":
            return {"dict": [[key, annotate(child)] for key, child in what]}
        if kind in ("list", "tuple"):
            return {kind: [annotate(child) for child in what]}
        return {**note, "dtype": dtypes[what]} if kind == "tensor" and what in dtypes else note

    return arrays, json.dumps(annotate(content.note))


def _decode(array: Array, dtype: str) -> Array:
    """Values of ``dtype`` that were encoded as ``array``."""
    native = DTYPES[dtype]
    if native.kind == "c":
        return np.ascontiguousarray(array).view(native).reshape(array.shape[:-1])
    return array.view(native)


def _as_reals(array: Array) -> Array:
    if array.dtype.kind != "c":
        return array
    real = np.dtype(f"f{array.dtype.itemsize // 2}")
    return array.reshape(*array.shape, 1).view(real)


def _as_bits(array: Array) -> Array:
    return array.view(np.uint16) if array.dtype == DTYPES["bfloat16"] else array


# Names of dtypes in safetensors.
SAFE = {
    "BOOL": "bool", "I8": "int8", "I16": "int16", "I32": "int32", "I64": "int64", "U8": "uint8", "U16": "uint16",
    "U32": "uint32", "U64": "uint64", "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64",
    "C64": "complex64",
}  # fmt: skip
SAFE_NAMES = {dtype: name for name, dtype in SAFE.items()}


# Largest header that the safetensors library reads.
_LARGEST_HEADER = 100_000_000


class Entry(NamedTuple):
    """Tensor to write: its dtype, its shape, and a function that returns it, of any engine."""

    dtype: str
    shape: tuple[int, ...]
    make: Callable[[], Any]


def _write_safetensors(file: BinaryIO, content: Content) -> None:
    arrays, note = _encode(content, _as_reals)
    entries = {
        name: Entry(as_dtype(array.dtype).name, array.shape, lambda array=array: array)  # type: ignore[misc]
        for name, array in arrays.items()
    }
    write_entries(file, entries, {**content.metadata, _NOTE: note})


def write_entries(file: BinaryIO, entries: Mapping[str, Entry], metadata: Mapping[str, str]) -> None:
    """Write a safetensors file; each tensor is made when it is written, so that one at a time is in memory."""
    # The library's writer leaves its temporary file behind if the process is killed, and raises its own error class for
    # a full disk.
    sizes = {name: DTYPES[entry.dtype].itemsize for name, entry in entries.items()}
    # As in the library, the widest dtypes come first, so that all values are aligned.
    names = sorted(entries, key=lambda name: (-sizes[name], name))
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    end = 0
    for name in names:
        dtype, shape, _ = entries[name]
        begin, end = end, end + math.prod(shape) * sizes[name]
        header[name] = {"dtype": SAFE_NAMES[dtype], "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > _LARGEST_HEADER:
        raise ValueError(f"save: a .safetensors file must have a header of at most 100 MB, got {len(text)} bytes")
    file.write(len(text).to_bytes(8, "little"))
    file.write(text)
    for name in names:
        file.write(_buffer(_to_host(entries[name].make(), (name,))))


def _buffer(array: Array) -> memoryview:
    """Bytes of a contiguous array, without a copy."""
    return array.reshape(-1).view(np.uint8).data


class Header(NamedTuple):
    """Header of a safetensors file: the entries of its tensors, its metadata, and where values begin."""

    entries: dict[str, dict[str, Any]]
    metadata: dict[str, str]
    start: int


def read_header(path: Path) -> Header:
    """Header of a safetensors file; ``ValueError`` that names the tensor for one that does not fit the file."""
    from safetensors import safe_open

    with open(path, "rb") as file:
        length = os.fstat(file.fileno()).st_size
        size = int.from_bytes(file.read(8), "little")
        if length < 8 or size > min(_LARGEST_HEADER, length - 8):
            raise ValueError(f"the header must fit into the file and 100 MB, got a length of {size} bytes")
        # The library takes quadratic time in the number of duplicate keys, so reject them first.
        header = json.loads(file.read(size), object_pairs_hook=_unique)
    if not isinstance(header, dict):
        raise ValueError(f"the header must be a JSON object, got {written(header)}")
    metadata = header.pop("__metadata__", None) or {}
    for name, entry in header.items():
        _check_entry(name, entry, length - 8 - size)
    # The library validates the rest.
    with safe_open(path, framework="numpy"):
        pass
    return Header(header, metadata, 8 + size)


def _check_entry(name: str, entry: Any, length: int) -> None:
    """Check the entry of a tensor in a file with ``length`` bytes of values."""
    if not isinstance(entry, dict) or not {"dtype", "shape", "data_offsets"} <= entry.keys():
        raise ValueError(f"the entry of {name} must have a dtype, a shape and data_offsets, got {entry!r}")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if dtype not in SAFE:
        raise ValueError(f"{name} must have a dtype that tensors have, got {dtype}")
    if not _are_sizes(shape):
        raise ValueError(f"{name} must have a shape of integers >= 0, got {shape!r}")
    if not _are_sizes(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise ValueError(f"{name} must have two data_offsets in ascending order, got {offsets!r}")
    begin, end = offsets
    expected = math.prod(shape) * DTYPES[SAFE[dtype]].itemsize
    if end - begin != expected:
        raise ValueError(f"{name} must have {expected} bytes, got {end - begin}")
    if end > length:
        raise ValueError(f"{name} must end within the file, got offset {end} in {length} bytes of values")


def _are_sizes(values: Any) -> bool:
    return isinstance(values, list) and all(type(value) is int and value >= 0 for value in values)


def _read_safetensors(path: Path) -> Content:
    header = read_header(path)
    # The NumPy reader of the library does not support bfloat16, so values are read here.
    with open(path, "rb") as file:
        arrays = {name: _values(file, header.start, name, entry) for name, entry in header.entries.items()}
    metadata = dict(header.metadata)
    note = metadata.pop(_NOTE, None)
    return Content(arrays, None if note is None else json.loads(note), metadata)


def map_tensors(path: object, device: str | None = None) -> dict[str, Array]:
    """Tensors of a safetensors file, as views of the file in memory; writing to them does not change the file.

    Each has a mapping of its own, so that the memory of one that was copied elsewhere is free again.
    """
    source = Path(os.fspath(path))  # type: ignore[call-overload]
    with naming_file(source):
        header = read_header(source)
        with open(source, "rb") as file:
            return {name: _mapped(file, header.start, entry) for name, entry in header.entries.items()}


def _mapped(file: BinaryIO, start: int, entry: dict[str, Any]) -> Array:
    dtype = DTYPES[SAFE[entry["dtype"]]]
    begin, end = entry["data_offsets"]
    if begin == end:
        return np.empty(entry["shape"], dtype)
    # A mapping begins at a multiple of the size of a page.
    before = (start + begin) % mmap.ALLOCATIONGRANULARITY
    pages = mmap.mmap(file.fileno(), before + end - begin, access=mmap.ACCESS_COPY, offset=start + begin - before)
    part = np.frombuffer(pages, np.uint8)[before:]
    if part.ctypes.data % dtype.alignment:
        part = part.copy()
    return part.view(dtype).reshape(entry["shape"])


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Dictionary of the pairs of a JSON object; ``ValueError`` for a duplicate key."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = Counter(key for key, _ in pairs)
        key, count = keys.most_common(1)[0]
        raise ValueError(f"keys of the header must be unique, got {key!r} {count} times")
    return found


def _values(file: BinaryIO, start: int, name: str, entry: dict[str, Any]) -> Array:
    array = np.empty(entry["shape"], DTYPES[SAFE[entry["dtype"]]])
    file.seek(start + entry["data_offsets"][0])
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
    arrays, note = _encode(content, _as_bits)
    # Without a note, numpy.load shows the tensors of a flat dictionary and nothing else.
    if content.metadata or note != json.dumps(_flat(arrays)):
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
                # Only reading to the end verifies the checksum.
                if file.read(1):
                    raise ValueError(f"{entry} in it must end after its array, got more bytes")
    if _NOTE_ARRAY not in arrays:
        return Content(arrays, None, {})
    kept = json.loads(arrays.pop(_NOTE_ARRAY).tobytes())
    return Content(arrays, json.loads(kept["tree"]), kept["metadata"])


def _array(name: str, file: Any) -> Array:
    """Array from a file in NumPy's format, in native byte order; object arrays are rejected."""
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
