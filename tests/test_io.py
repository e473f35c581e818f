"""Files of tensors: every dtype from every engine to every engine, damage, and concurrent writers."""

from __future__ import annotations

import io
import json
import os
import pickle
import re
import stat
import struct
import threading
import time
import zipfile
from pathlib import Path
from typing import Any

import hypothesis
import hypothesis.strategies as st
import ml_dtypes
import numpy as np
import pytest

import ember_ml
from ember_ml import backend as backends
from ember_ml import ops
from ember_ml.backend import Backend
from ember_ml.dtypes import DTYPES
from ember_ml.errors import UnsupportedError

FORMATS = ["safetensors", "npz", "npy"]
ENGINES = ember_ml.get_available_backends()

every_format = pytest.mark.parametrize("suffix", FORMATS)


def bits(dtype: str) -> np.ndarray:
    """An array of that dtype with all sorts of bits in it, signalling NaNs and subnormals among them."""
    own = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    if dtype == "bool":
        return np.array([[True, False, True], [False, False, True]])
    raw = np.random.default_rng(len(dtype)).bytes(6 * own.itemsize)
    return np.frombuffer(raw, own).reshape(2, 3)


def host(x: Any) -> np.ndarray:
    for backend in backends.loaded():
        if isinstance(x, backend.tensors):
            return backend.to_host(x)
    raise AssertionError(f"{x!r} is no tensor")


def same_bits(a: Any, b: np.ndarray) -> bool:
    a = host(a)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@every_format
@pytest.mark.parametrize("reader", ENGINES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_goes_from_every_engine_to_every_engine(
    backend: Backend, reader: str, dtype: str, suffix: str, tmp_path: Path
) -> None:
    path, values = tmp_path / f"x.{suffix}", bits(dtype)
    if dtype not in backend.dtypes:
        return
    x = backend.convert(values, None, backend.device)
    values = host(x)
    if suffix == "npy" and dtype == "bfloat16":
        with pytest.raises(UnsupportedError, match="bfloat16"):
            ops.save(path, x)
        assert list(tmp_path.iterdir()) == []
        return
    ops.save(path, x)
    with ember_ml.use_backend(reader):
        if dtype not in backends.load(reader).dtypes:
            with pytest.raises(UnsupportedError, match=dtype):
                ops.load(path)
            return
        y = ops.load(path)
    assert isinstance(y, backends.load(reader).tensors)
    assert same_bits(y, values)


@every_format
@pytest.mark.parametrize("dtype", ["float32", "bool", "complex64", "bfloat16"])
@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (3, 0, 2), (1,), (2, 1, 3)])
def test_every_shape_comes_back(
    backend: Backend, shape: tuple[int, ...], dtype: str, suffix: str, tmp_path: Path
) -> None:
    if (suffix, dtype) == ("npy", "bfloat16"):
        return
    x = ops.ones(shape, dtype=dtype)
    ops.save(tmp_path / f"x.{suffix}", x)
    assert same_bits(ops.load(tmp_path / f"x.{suffix}"), host(x))


@every_format
def test_views_are_saved_by_value(backend: Backend, suffix: str, tmp_path: Path) -> None:
    base = ops.reshape(ops.arange(24, dtype="float32"), (2, 3, 4))
    views = [
        ops.transpose(base),
        ops.flip(base, axis=-1),
        base[:, 1:, ::2],
        ops.broadcast_to(base[0, 0], (3, 4)),
        ops.imag(ops.conj(ops.asarray([1 + 2j, 3 - 4j]))),
        ops.conj(ops.asarray([1 + 2j, 3 - 4j])),
    ]
    for view in views:
        ops.save(tmp_path / f"x.{suffix}", view)
        assert ops.load(tmp_path / f"x.{suffix}").tolist() == view.tolist()


@pytest.mark.parametrize("suffix", ["safetensors", "npz"])
def test_tensors_that_share_memory_are_each_saved(backend: Backend, suffix: str, tmp_path: Path) -> None:
    x = ops.arange(6, dtype="float32")
    ops.save(tmp_path / f"x.{suffix}", {"a": x, "b": x, "c": x[2:4], "d": ops.reshape(x, (2, 3))})
    back = ops.load(tmp_path / f"x.{suffix}")
    assert [back[k].tolist() for k in "abc"] == [x.tolist(), x.tolist(), [2.0, 3.0]]
    assert tuple(back["d"].shape) == (2, 3)


def test_parameters_are_saved_without_their_gradient(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    ops.save(tmp_path / "x.npz", [torch.nn.Parameter(torch.ones(2)), torch.ones(1, requires_grad=True) * 2])
    assert [x.tolist() for x in ops.load(tmp_path / "x.npz")] == [[1.0, 1.0], [2.0]]


def plain(tree: Any) -> Any:
    """A tree with its tensors as lists, for comparison."""
    if isinstance(tree, dict):
        return {key: plain(child) for key, child in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)(map(plain, tree))
    return ("tensor", tree.tolist()) if hasattr(tree, "dtype") else tree


@pytest.mark.parametrize("suffix", ["safetensors", "npz"])
def test_structure_comes_back_equal(backend: Backend, suffix: str, tmp_path: Path) -> None:
    x = ops.asarray([1.0, 2.0])
    tree = {
        "layers": [{"weight": x, "bias": None}, (x, [x], ())],
        "a.b": x,
        "a": {"b": x, "b/c": {}},
        "a/b": ops.asarray(3),
        "": x,
        "../../etc/passwd": x,
        "/absolute": x,
        "file": x,
        "__metadata__": x,
        "__ember_ml__": x,
        "ember_ml": x,
        "tensor": x,
        "naïve ключ 鍵 🔑": x,
        "nul\0 and\nlines": x,
        "x.npy": x,
        "x": x,
        7: [x],
        "7": [x],
        True: "key",
        None: 1,
        2.5: False,
        "values": [1, -(2**70), 1.5, float("inf"), "text ✓", True, None, 1 + 2j],
        "empty": [[], {}, ()],
    }
    ops.save(tmp_path / f"x.{suffix}", tree)
    back = ops.load(tmp_path / f"x.{suffix}")
    assert plain(back) == plain(tree)
    assert list(back) == list(tree)
    assert [type(v) for v in back["values"]] == [type(v) for v in tree["values"]]


trees = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3) | st.just("TENSOR"),
    lambda children: (
        st.lists(children, max_size=3)
        | st.lists(children, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3) | st.integers(), children, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize("suffix", ["safetensors", "npz"])
@hypothesis.settings(max_examples=25, deadline=None, suppress_health_check=list(hypothesis.HealthCheck))
@hypothesis.given(tree=trees)
def test_any_structure_comes_back_equal(tree: Any, suffix: str, tmp_path: Path) -> None:
    def filled(node: Any) -> Any:
        if isinstance(node, dict):
            return {key: filled(child) for key, child in node.items()}
        if isinstance(node, (list, tuple)):
            return type(node)(map(filled, node))
        return np.arange(3) if node == "TENSOR" else node

    ops.save(tmp_path / f"x.{suffix}", filled(tree))
    assert plain(ops.load(tmp_path / f"x.{suffix}")) == plain(filled(tree))


@pytest.mark.parametrize("suffix", ["safetensors", "npz"])
def test_metadata_is_kept(backend: Backend, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"x.{suffix}"
    ops.save(path, {"x": ops.ones(2)}, {"author": "Émile", "licence": "MIT"})
    tree, metadata = ops.load(path, with_metadata=True)
    assert metadata == {"author": "Émile", "licence": "MIT"}
    assert list(tree) == ["x"]
    for wrong in ({"a": 1}, {1: "a"}, "text", [("a", "b")]):
        with pytest.raises(TypeError, match="strings"):
            ops.save(path, ops.ones(2), wrong)
    with pytest.raises(ValueError, match="save: the keys of metadata must not be 'ember_ml', which is reserved"):
        ops.save(path, ops.ones(2), {"ember_ml": "x"})


def test_files_of_other_tools_are_flat_dictionaries(backend: Backend, tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    arrays = {"b.weight": np.ones((2, 2), np.float16), "a": np.array(3), "c": np.array([1 + 2j], np.complex64)}
    save_file(arrays, tmp_path / "x.safetensors", {"format": "pt"})
    np.savez(tmp_path / "x.npz", **arrays)
    for suffix in ("safetensors", "npz"):
        back, metadata = ops.load(tmp_path / f"x.{suffix}", with_metadata=True)
        assert set(back) == set(arrays)
        assert all(same_bits(back[name], array) for name, array in arrays.items())
        assert metadata == ({"format": "pt"} if suffix == "safetensors" else {})


def test_other_tools_read_the_files(backend: Backend, tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    tree = {"w": ops.ones((2, 2)), "nested": {"b": ops.asarray([1, 2])}}
    for suffix in ("safetensors", "npz"):
        ops.save(tmp_path / f"x.{suffix}", tree)
    assert load_file(tmp_path / "x.safetensors")["nested.b"].tolist() == [1, 2]
    with np.load(tmp_path / "x.npz", allow_pickle=False) as archive:
        assert archive["w"].tolist() == [[1.0, 1.0], [1.0, 1.0]]
        assert archive["nested.b"].tolist() == [1, 2]
    ops.save(tmp_path / "x.npy", tree["w"])
    assert np.load(tmp_path / "x.npy", allow_pickle=False).tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_bfloat16_files_of_other_tools_are_read(backend: Backend, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from safetensors.torch import save_file

    save_file({"x": torch.tensor([1.5, -2.0], dtype=torch.bfloat16)}, tmp_path / "x.safetensors")
    x = ops.load(tmp_path / "x.safetensors")["x"]
    assert ops.get_dtype(x) == "bfloat16"
    assert ops.cast(x, "float32").tolist() == [1.5, -2.0]


def test_a_dtype_that_tensors_do_not_have_is_named(backend: Backend, tmp_path: Path) -> None:
    header = json.dumps({"x": {"dtype": "F8_E4M3", "shape": [2], "data_offsets": [0, 2]}}).encode()
    (tmp_path / "x.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + b"\0\0")
    np.save(tmp_path / "x.npy", np.array(["text"]))
    np.savez(tmp_path / "x.npz", x=np.array(["2020-01-01"], "datetime64[D]"))
    for suffix, name in (("safetensors", "F8_E4M3"), ("npy", "U4"), ("npz", "datetime64")):
        with pytest.raises(ValueError, match=name) as caught:
            ops.load(tmp_path / f"x.{suffix}")
        assert f"x.{suffix}" in str(caught.value)


def test_npy_holds_one_tensor(backend: Backend, tmp_path: Path) -> None:
    for wrong in ([ops.ones(2)], {"x": ops.ones(2)}, 1.0, None, "text"):
        with pytest.raises(TypeError, match="one tensor"):
            ops.save(tmp_path / "x.npy", wrong)
    with pytest.raises(ValueError, match="metadata"):
        ops.save(tmp_path / "x.npy", ops.ones(2), {"a": "b"})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["x.pt", "x", "x.npz.gz", "x.pkl"])
def test_another_suffix_is_refused(backend: Backend, name: str, tmp_path: Path) -> None:
    for attempt in (lambda: ops.save(tmp_path / name, ops.ones(2)), lambda: ops.load(tmp_path / name)):
        with pytest.raises(ValueError, match=r"\.safetensors, \.npz, \.npy"):
            attempt()
    assert list(tmp_path.iterdir()) == []


@every_format
def test_a_missing_file_is_not_found(backend: Backend, suffix: str, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        ops.load(tmp_path / f"x.{suffix}")
    nowhere = tmp_path / "nowhere" / f"x.{suffix}"
    with pytest.raises(FileNotFoundError, match=re.escape(f"'{nowhere}'")):
        ops.save(nowhere, ops.ones(2))
    (tmp_path / f"folder.{suffix}").mkdir()
    with pytest.raises(IsADirectoryError):
        ops.save(tmp_path / f"folder.{suffix}", ops.ones(2))
    with pytest.raises(IsADirectoryError):
        ops.load(tmp_path / f"folder.{suffix}")


@every_format
def test_a_truncated_file_is_a_value_error(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"x.{suffix}"
    x = np.arange(50.0)
    ops.save(path, x if suffix == "npy" else {"a": x, "b": [x]})
    whole = path.read_bytes()
    for size in {*range(0, len(whole), 61), 1, 7, 8, 9, len(whole) - 1}:
        path.write_bytes(whole[:size])
        with pytest.raises(ValueError, match=f"x.{suffix}") as caught:
            ops.load(path)
        assert caught.value.__cause__ is not None
    path.write_bytes(whole + b"more")
    if suffix != "npz":  # a zip file may have anything around it
        with pytest.raises(ValueError, match=f"x.{suffix}"):
            ops.load(path)


@pytest.mark.parametrize("suffix", ["safetensors", "npz"])
def test_no_changed_byte_ends_in_another_error(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"x.{suffix}"
    ops.save(path, {"a": np.arange(4, dtype=np.int8), "b": [True]})
    whole = path.read_bytes()
    messages = []
    for place in range(0, len(whole), 3):
        for flip in (0x01, 0xFF):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ flip]) + whole[place + 1 :])
            try:
                ops.load(path)
            except ValueError as error:
                messages.append(str(error))
    assert messages
    assert all(f"x.{suffix}" in message for message in messages)


def test_damaged_values_of_an_npz_file_are_noticed(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    ops.save(path, np.full(1000, 7.0))
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 2] ^= 1
    path.write_bytes(whole)
    with pytest.raises(ValueError, match="CRC"):
        ops.load(path)


@every_format
@pytest.mark.parametrize(
    "content", [b"", b"hello, world", b"\x93NUMPY", b"PK\x03\x04" + b"\0" * 50, b"\xff" * 64, b"{}"]
)
def test_a_foreign_file_is_a_value_error(backend: Backend, content: bytes, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"x.{suffix}"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"x.{suffix}"):
        ops.load(path)


@pytest.mark.parametrize("note", ["[]", "{}", "7", "null", '{"tensor": "gone"}', '{"bomb": 1}', "not json"])
def test_a_note_that_makes_no_sense_is_a_value_error(note: str, tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    save_file({"x": np.ones(2)}, tmp_path / "x.safetensors", {"ember_ml": note})
    if note == "null":
        assert list(ops.load(tmp_path / "x.safetensors")) == ["x"]
        return
    with pytest.raises(ValueError, match=r"x\.safetensors"):
        ops.load(tmp_path / "x.safetensors")


ENTRY = '{"dtype":"F32","shape":[1],"data_offsets":[0,4]}'
MANY = 200_000
# Headers that are wrong, with the length that the file gives them, if it is not theirs, and what the message says.
HEADERS: dict[str, tuple[str, int | None, str]] = {
    "a tensor twice": (f'{{"a":{ENTRY},"b":{ENTRY},"b":{ENTRY}}}', None, "unique, got 'b' 2 times"),
    "a tensor many times": ("{" + ",".join([f'"a":{ENTRY}'] * MANY) + "}", None, f"unique, got 'a' {MANY} times"),
    "many tensors twice": (
        "{" + ",".join(f'"a{i % (MANY // 2)}":{ENTRY}' for i in range(MANY)) + "}", None, "unique, got 'a0' 2 times"
    ),
    "metadata twice": ('{"__metadata__":{},"__metadata__":{}}', None, "unique, got '__metadata__' 2 times"),
    "a key of metadata many times": (
        '{"__metadata__":{' + ",".join(['"k":"v"'] * MANY) + "}}", None, f"unique, got 'k' {MANY} times"
    ),
    "a field of a tensor many times": ('{"a":{' + ",".join(['"shape":[1]'] * MANY) + "}}", None, "unique, got 'shape'"),
    "lists in lists": ('{"a":' + "[" * 1_000_000 + "]" * 1_000_000 + "}", None, ""),
    "objects in objects": ('{"a":' * 1_000_000 + "1" + "}" * 1_000_000, None, ""),
    "a list without end": ("[" * 1_000_000, None, ""),
    "a number without end": ('{"a":' + "1" * 1_000_000 + "}", None, ""),
    "a long shape": ('{"a":{"dtype":"F32","shape":[' + "1," * MANY + '1],"data_offsets":[0,4]}}', None, ""),
    "many tensors in one place": ("{" + ",".join(f'"a{i}":{ENTRY}' for i in range(MANY)) + "}", None, "offset"),
    "offsets that overlap": (f'{{"a":{ENTRY},"b":{ENTRY.replace("[0,4]", "[2,6]")}}}', None, "offset"),
    "offsets out of the file": ('{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}', None, ""),
    "offsets beyond any file": (f'{{"a":{ENTRY.replace("[0,4]", "[0,18446744073709551615]")}}}', None, ""),
    "offsets that go back": (f'{{"a":{ENTRY.replace("[0,4]", "[4,0]")}}}', None, ""),
    "a size that overflows": ('{"a":{"dtype":"F32","shape":[4294967296,4294967297],"data_offsets":[0,4]}}', None, ""),
    "a header longer than the file": ("{}", 1000, "got a length of 1000 bytes"),
    "a header longer than any": ("{}", 2**64 - 1, "got a length of 18446744073709551615 bytes"),
    "no object": ("[]", None, ""),
    "a tensor that is a number": ('{"a":7}', None, ""),
    "metadata that is a number": ('{"__metadata__":7}', None, ""),
}  # fmt: skip


@pytest.mark.parametrize("case", HEADERS)
def test_a_malformed_header_is_a_value_error_at_once(case: str, tmp_path: Path) -> None:
    header, length, message = HEADERS[case]
    path = tmp_path / "x.safetensors"
    path.write_bytes(struct.pack("<Q", len(header) if length is None else length) + header.encode() + b"\0" * 4)
    ops.get_dtype(1.0)  # loads the engine, which takes longer
    start = time.process_time()
    with pytest.raises(ValueError, match=rf"x\.safetensors.*{re.escape(message)}"):
        ops.load(path)
    # What takes more than linear time takes minutes.
    assert time.process_time() - start < 8


def test_the_safetensors_library_reads_every_dtype(tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    path = tmp_path / "x.safetensors"
    arrays = {
        name: bits(name) for name in ("bool", "uint8", "int16", "float16", "int32", "float32", "float64", "uint64")
    }
    arrays |= {"é": np.zeros((0, 3), np.int8), "scalar": np.array(1.0)}
    ops.save(path, arrays, {"key": "naïve"})
    found = load_file(path)
    assert set(found) == set(arrays)
    assert all(same_bits(found[name], array) for name, array in arrays.items())
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    assert header.pop("__metadata__")["key"] == "naïve"
    # Readers may map the file into memory, where values must be aligned.
    assert all((8 + size + header[name]["data_offsets"][0]) % array.itemsize == 0 for name, array in arrays.items())


class Bomb:
    """An object whose unpickling leaves a trace."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.trace),)


def test_no_pickle_is_ever_loaded(backend: Backend, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    objects = np.array([Bomb(trace)], dtype=object)
    np.save(tmp_path / "objects.npy", objects, allow_pickle=True)
    np.savez(tmp_path / "objects.npz", allow_pickle=True, x=objects)
    for suffix in FORMATS:
        (tmp_path / f"raw.{suffix}").write_bytes(pickle.dumps(Bomb(trace)))
    with zipfile.ZipFile(tmp_path / "member.npz", "w") as archive:
        archive.writestr("x.npy", pickle.dumps(Bomb(trace)))
        archive.writestr("y", pickle.dumps(Bomb(trace)))
    for path in list(tmp_path.iterdir()):
        with pytest.raises(ValueError, match=path.name):
            ops.load(path)
    assert not trace.exists()


@every_format
def test_a_write_that_fails_leaves_everything_as_it_was(
    backend: Backend, suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"x.{suffix}"
    ops.save(path, ops.zeros(2))
    with pytest.raises(TypeError, match="save: the values of tree must be tensors, numbers, strings and nested co"):
        ops.save(path, {"a": ops.ones(2), "b": object()})
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", failure(OSError("disk full")))
        with pytest.raises(OSError, match="disk full"):
            ops.save(path, ops.ones(2))
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", failure(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            ops.save(path, ops.ones(2))
    assert ops.load(path).tolist() == [0.0, 0.0]
    assert list(tmp_path.iterdir()) == [path]


def failure(error: BaseException) -> Any:
    def fail(*args: Any, **kwargs: Any) -> Any:
        raise error

    return fail


@every_format
def test_permissions_are_those_of_a_plain_file(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"x.{suffix}"
    before = os.umask(0o027)
    try:
        ops.save(path, np.ones(2))
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        path.chmod(0o600)
        ops.save(path, np.ones(2))
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    finally:
        os.umask(before)


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "x.npy", tmp_path / "link.npy"
    link.symlink_to(target)
    ops.save(link, np.ones(2))
    assert link.is_symlink()
    assert ops.load(target).tolist() == [1.0, 1.0]


@every_format
def test_writers_that_meet_leave_a_whole_file(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"x.{suffix}"
    ops.save(path, np.zeros(3000))
    failures: list[BaseException] = []

    def write(value: float) -> None:
        try:
            for _ in range(15):
                ops.save(path, np.full(3000, value))
        except BaseException as error:
            failures.append(error)

    writers = [threading.Thread(target=write, args=(float(value),)) for value in (1, 2)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        seen = ops.load(path)
        assert seen.shape == (3000,)
        assert seen.min() == seen.max()
    for writer in writers:
        writer.join()
    assert failures == []
    assert list(tmp_path.iterdir()) == [path]


def test_unicode_paths_and_all_kinds_of_them(backend: Backend, tmp_path: Path) -> None:
    folder = tmp_path / "dossier é 鍵"
    folder.mkdir()
    for suffix in (*FORMATS, "SafeTensors", "NPZ"):
        path = folder / f"naïve 🔑.{suffix}"
        ops.save(str(path), ops.ones(2))
        assert ops.load(path).tolist() == [1.0, 1.0]
    for wrong in (3.5, None, io.BytesIO()):
        with pytest.raises(TypeError):
            ops.save(wrong, ops.ones(2))
        with pytest.raises(TypeError):
            ops.load(wrong)


def test_a_device_is_asked_for(backend: Backend, tmp_path: Path) -> None:
    ops.save(tmp_path / "x.npz", {"x": ops.ones(2)})
    assert ops.get_device(ops.load(tmp_path / "x.npz", "cpu")["x"]) == "cpu"
    with pytest.raises(ValueError, match="abacus"):
        ops.load(tmp_path / "x.npz", device="abacus")


def test_checkpoints_are_numbered_and_pruned(backend: Backend, tmp_path: Path) -> None:
    folder = tmp_path / "run" / "one"
    for value in range(5):
        path = ops.save_checkpoint(folder, {"value": ops.asarray(float(value)), "step": value}, keep=3)
        assert path.name == f"checkpoint-{value:08d}.safetensors"
        assert ops.load_checkpoint(folder)["step"] == value
        assert ops.load_checkpoint(path)["step"] == value
    assert sorted(p.name[-13:] for p in folder.iterdir()) == [f"{i}.safetensors" for i in (2, 3, 4)]
    assert ops.load_checkpoint(str(folder), step=2)["value"].tolist() == 2.0
    assert ops.save_checkpoint(folder, ops.ones(2), step=100).name == "checkpoint-00000100.safetensors"
    assert ops.save_checkpoint(folder, ops.ones(2)).name == "checkpoint-00000101.safetensors"
    early = ops.save_checkpoint(folder, ops.zeros(1), step=1, keep=2)
    assert sorted(p.name for p in folder.iterdir()) == [early.name, "checkpoint-00000101.safetensors"]


def test_another_process_may_delete_the_same_checkpoint(
    backend: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both listed the file before either deleted it."""
    unlink = Path.unlink

    def delete_second(path: Path, missing_ok: bool = False) -> None:
        unlink(path)
        unlink(path, missing_ok)

    ops.save_checkpoint(tmp_path, {"step": 0})
    monkeypatch.setattr(Path, "unlink", delete_second)
    path = ops.save_checkpoint(tmp_path, {"step": 1}, keep=1)
    assert list(tmp_path.iterdir()) == [path]


def test_checkpoints_with_names_share_a_folder(backend: Backend, tmp_path: Path) -> None:
    for name in ("model.npz", "optimizer.npz", "a.b[1].npz"):
        for step in (5, 6):
            ops.save_checkpoint(tmp_path / name, {"name": name, "step": step}, step, keep=1)
        assert ops.load_checkpoint(tmp_path / name) == {"name": name, "step": 6}
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "a.b[1]-00000006.npz", "model-00000006.npz", "optimizer-00000006.npz"
    ]  # fmt: skip


def test_an_unfinished_checkpoint_is_never_seen(
    backend: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ops.save_checkpoint(tmp_path, {"step": 0})
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", failure(OSError("power cut")))
        with pytest.raises(OSError, match="power cut"):
            ops.save_checkpoint(tmp_path, {"step": 1}, keep=1)
    (tmp_path / ".ember-0123456789abcdef.tmp").write_bytes(b"half a file")
    (tmp_path / "checkpoint-9.safetensors").write_bytes(b"something else")
    (tmp_path / "checkpoint-00000009.safetensors.part").write_bytes(b"something else")
    assert ops.load_checkpoint(tmp_path) == {"step": 0}


def test_checkpoints_that_are_not_there(backend: Backend, tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "nowhere", tmp_path / "model.npz"):
        with pytest.raises(FileNotFoundError, match="there is none"):
            ops.load_checkpoint(place)
    ops.save_checkpoint(tmp_path, {}, 3)
    with pytest.raises(FileNotFoundError, match="load_checkpoint: directory_or_path must hold checkpoint 4, got "):
        ops.load_checkpoint(tmp_path, 4)
    for wrong in ({"step": -1}, {"keep": 0}):
        with pytest.raises(ValueError, match=r"must be >= (0|1), got"):
            ops.save_checkpoint(tmp_path, {}, **wrong)
    with pytest.raises(TypeError):
        ops.save_checkpoint(tmp_path, {}, 1.5)  # type: ignore[arg-type]
