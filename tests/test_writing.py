"""Files that are written whole or not at all, by everything that writes one: killed writers and full disks."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import ember_ml
from ember_ml import backend, cli, nn, ops, tools, training
from ember_ml.tools import measuring
from emberlint.report import baseline

SIZE = 4000
"""The elements of the arrays that are written; every writer writes more bytes than that."""


def write_history(path: Path) -> None:
    history = training.History([{"loss": 1.0}] * SIZE)
    training.CSVLogger(path).on_epoch_end(SimpleNamespace(history=history), {"loss": 1.0})  # type: ignore[arg-type]


def write_matrix(path: Path) -> None:
    measuring.write(json.loads(Path(tools.LOCK).read_text(encoding="utf-8")), path)


def write_page(path: Path) -> None:
    options = cli._parser().parse_args(["ops", "matrix", "--backend", "numpy", "--format", "html", "--out", str(path)])
    options.command(options)


def write_choice(path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backend, "choice_file", lambda: path)
        # No backend has so long a name, which is what makes the file long.
        backend._write_choice("n" * SIZE)


WRITERS: dict[str, Callable[[Path], Any]] = {
    "x.safetensors": lambda path: ops.save(path, {"x": np.ones(SIZE)}),
    "x.npz": lambda path: ops.save(path, {"x": np.ones(SIZE)}),
    "x.npy": lambda path: ops.save(path, np.ones(SIZE)),
    "checkpoint-00000007.safetensors": lambda path: ops.save_checkpoint(path.parent, {"x": np.ones(SIZE)}, step=7),
    "many.safetensors": lambda path: ops.save(path, [np.ones(1)] * SIZE),
    "many.npz": lambda path: ops.save(path, [np.ones(1)] * 100),
    "model.safetensors": lambda path: nn.Linear(SIZE, 1).save(path),
    "log.csv": write_history,
    "matrix.json": write_matrix,
    "page.html": write_page,
    "backend": write_choice,
    "emberlint-baseline.json": lambda path: baseline.save(str(path), {str(i): {} for i in range(SIZE)}),
}

every_writer = pytest.mark.parametrize("name", WRITERS)
pytestmark = pytest.mark.skipif(os.name != "posix", reason="only POSIX has these signals, limits and permissions")


def started(function: Callable[[Path], None], folder: Path) -> subprocess.Popen[str]:
    """A process that runs a function of this file."""
    code = f"import sys, test_writing as t; t.{function.__name__}(t.Path(sys.argv[1]))"
    tests, root = Path(__file__).parent, Path(ember_ml.__file__).parent.parent
    environment = {**os.environ, "PYTHONPATH": f"{tests}{os.pathsep}{root}", "EMBER_ML_BACKEND": "numpy"}
    program = [sys.executable, "-c", code, str(folder)]
    return subprocess.Popen(program, stdout=subprocess.PIPE, text=True, env=environment)


def block_writers(folder: Path) -> None:
    """Run every writer in a separate process until it would rename its file, and wait for them."""

    def block(*arguments: Any) -> None:
        # One write for a line: other writers use the same pipe at the same time.
        os.write(1, f"{os.getpid()}\n".encode())
        time.sleep(600)

    os.replace = block
    with ember_ml.use_backend("numpy"):
        for name, write in WRITERS.items():
            if os.fork() == 0:
                write(folder / name / name)
                os._exit(1)
    for _ in WRITERS:
        os.wait()


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for each writer, in which it wrote a file with SIGKILL in the middle, after another that was not."""
    folder = tmp_path_factory.mktemp("killed")
    for name in WRITERS:
        (folder / name).mkdir()
    with ExitStack() as stack:
        process = stack.enter_context(started(block_writers, folder))
        assert process.stdout is not None
        for _ in WRITERS:
            stack.callback(os.kill, int(process.stdout.readline()), signal.SIGKILL)
        found = {name: list((folder / name).iterdir()) for name in WRITERS}
        with ember_ml.use_backend("numpy"):
            for name, write in WRITERS.items():
                write(folder / name / name)
        # These writers are still alive.
        for name, paths in found.items():
            assert len(paths) == 1
            assert paths[0].stat().st_size > SIZE
            assert set((folder / name).iterdir()) == {*paths, folder / name / name}
    return folder


@every_writer
def test_the_next_writer_removes_what_a_killed_one_left(name: str, killed: Path) -> None:
    path = killed / name / name
    assert len(list(path.parent.iterdir())) == 2
    with ember_ml.use_backend("numpy"):
        WRITERS[name](path)
    assert list(path.parent.iterdir()) == [path]


def fill_disk(folder: Path) -> None:
    """Run every writer while files have no room for more than 3000 bytes, and print what that leads to."""
    import resource

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
    with ember_ml.use_backend("numpy"):
        for name, write in WRITERS.items():
            try:
                write(folder / name / name)
                result: list[Any] = ["nothing was raised"]
            except OSError as error:
                result = [error.errno, error.filename]
            except Exception as error:
                result = [repr(error)]
            print(json.dumps(result), flush=True)


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[Any]]]:
    """A folder for each writer with an old file, in which it ran with no space left, and the errors that it raised."""
    folder = tmp_path_factory.mktemp("full")
    for name in WRITERS:
        (folder / name).mkdir()
        (folder / name / name).write_bytes(b"old")
    output, _ = started(fill_disk, folder).communicate(timeout=300)
    return folder, dict(zip(WRITERS, map(json.loads, output.splitlines()), strict=True))


@every_writer
def test_a_full_disk_is_an_os_error_and_leaves_the_old_file(name: str, full: tuple[Path, dict[str, list[Any]]]) -> None:
    folder, errors = full
    path = folder / name / name
    assert errors[name] == [errno.EFBIG, str(path)]
    assert list(path.parent.iterdir()) == [path]
    assert path.read_bytes() == b"old"


@every_writer
def test_every_writer_leaves_the_permissions_of_a_plain_file(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    before = os.umask(0o027)
    try:
        with ember_ml.use_backend("numpy"):
            WRITERS[name](path)
            assert path.stat().st_mode & 0o777 == 0o640
            path.chmod(0o604)
            WRITERS[name](path)
            assert path.stat().st_mode & 0o777 == 0o604
    finally:
        os.umask(before)


@every_writer
def test_every_writer_replaces_the_file_in_one_step(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / name
    path.write_bytes(b"old")
    steps: list[str] = []
    replace, synchronize = os.replace, os.fsync

    def recorded_replace(source: str, target: str) -> None:
        assert Path(source).parent == Path(target).parent == tmp_path
        assert path.read_bytes() == b"old"
        steps.append("replace")
        replace(source, target)

    def recorded_synchronize(handle: int) -> None:
        steps.append("folder" if os.path.samestat(os.fstat(handle), tmp_path.stat()) else "file")
        synchronize(handle)

    monkeypatch.setattr(os, "replace", recorded_replace)
    monkeypatch.setattr(os, "fsync", recorded_synchronize)
    with ember_ml.use_backend("numpy"):
        WRITERS[name](path)
    assert steps == ["file", "replace", "folder"]
    assert path.stat().st_size > SIZE
    assert list(tmp_path.iterdir()) == [path]
