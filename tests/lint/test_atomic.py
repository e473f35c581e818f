"""Atomic replacement of files: failures, readers, and the temporary files of killed writers."""

from __future__ import annotations

import errno
import os
import re
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from emberlint import atomic

only_posix = pytest.mark.skipif(os.name != "posix", reason="only POSIX has these signals and files")

# A process that stops after it has written half of a file.
HALF = """
import sys, time
from emberlint import atomic
with atomic.replacing(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    print("blocked", flush=True)
    time.sleep(600)
"""


def half_written(path: Path) -> subprocess.Popen[str]:
    root = Path(atomic.__file__).parent.parent
    process = subprocess.Popen(
        [sys.executable, "-c", HALF, str(path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "blocked\n"
    return process


@only_posix
@pytest.mark.parametrize("reaped", [True, False])
def test_the_next_writer_removes_the_file_of_a_killed_one(reaped: bool, tmp_path: Path) -> None:
    path, other = tmp_path / "x", tmp_path / "y"
    path.write_bytes(b"old")
    with half_written(path) as process:
        (temporary,) = set(tmp_path.iterdir()) - {path}
        atomic.write(other, b"other")
        atomic.check(other)
        assert set(tmp_path.iterdir()) == {path, other, temporary}, "its writer is alive"
        assert temporary.read_bytes() == b"half"
        process.kill()
        if reaped:
            process.wait()
        elif not os.path.exists("/proc/self/stat"):
            pytest.skip("only Linux distinguishes zombies from running processes")
        else:
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        atomic.write(other, b"other")
    assert set(tmp_path.iterdir()) == {path, other}
    assert path.read_bytes() == b"old"


def dead_process() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@only_posix
def test_only_abandoned_files_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, dead, token = atomic._host(), dead_process(), "0123456789abcdef"
    elsewhere = "f" * 16
    day = 24 * 60 * 60
    # Name of a file, its age in seconds, and whether it stays.
    cases = [
        (f".ember-{here}-{dead}-{token}.tmp", 0, False),
        (f".ember-{here}-{os.getpid()}-{token}.tmp", 0, True),
        (f".ember-{here}-{os.getpid()}-{token}.tmp", 9 * day, True),
        (f".ember-{here}-1-{token}.tmp", 9 * day, True),
        (f".ember-{elsewhere}-{dead}-{token}.tmp", 0, True),
        (f".ember-{elsewhere}-{os.getpid()}-{token}.tmp", day - 600, True),
        (f".ember-{elsewhere}-{os.getpid()}-{token}.tmp", day + 600, False),
        (f".ember-{here}-{dead}-{token}.tmp.npz", 9 * day, True),
        (f"x.ember-{here}-{dead}-{token}.tmp", 9 * day, True),
        (f".ember-{here}-{'9' * 30}-{token}.tmp", 9 * day, True),
        (".ember-notes.tmp", 9 * day, True),
    ]
    for name, age, stays in cases:
        path = tmp_path / name
        path.write_bytes(b"half")
        os.utime(path, (time.time() - age,) * 2)
        atomic.write(tmp_path / "x", b"new")
        assert path.exists() == stays, (name, age)
        path.unlink(missing_ok=True)
    foreign = tmp_path / f".ember-{here}-{dead}-{token}.tmp"
    foreign.write_bytes(b"half")
    with monkeypatch.context() as patch:
        patch.setattr(os, "kill", failing(PermissionError(errno.EPERM, "of another user")))
        atomic.write(tmp_path / "x", b"new")
    assert foreign.exists()
    # A file that cannot be removed does not prevent writing.
    os.unlink(foreign)
    foreign.mkdir()
    atomic.write(tmp_path / "x", b"newer")
    assert (tmp_path / "x").read_bytes() == b"newer"


@only_posix
def test_a_folder_that_cannot_be_listed_can_be_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "listdir", failing(PermissionError(errno.EACCES, "not readable")))
    atomic.write(tmp_path / "x", b"new")
    assert (tmp_path / "x").read_bytes() == b"new"


def failing(error: BaseException) -> object:
    def fail(*arguments: object, **keywords: object) -> None:
        raise error

    return fail


def write_half(path: Path, error: BaseException) -> None:
    """Write a part of a file, then fail."""
    old = path.read_bytes() if path.exists() else None
    with atomic.replacing(path) as file:
        file.write(b"new" * 100_000)
        file.flush()
        assert (path.read_bytes() if path.exists() else None) == old
        raise error


@pytest.mark.parametrize("kind", [OSError, ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("old", [b"old", None])
def test_a_failure_in_the_middle_leaves_the_old_content(
    kind: type[BaseException], old: bytes | None, tmp_path: Path
) -> None:
    path = tmp_path / "x"
    if old is not None:
        path.write_bytes(old)
    with pytest.raises(kind) as caught:
        write_half(path, kind(errno.ENOSPC, "No space left"))
    if kind is OSError:
        assert str(caught.value) == f"[Errno {errno.ENOSPC}] No space left: {str(path)!r}"
    assert list(tmp_path.iterdir()) == ([path] if old is not None else [])
    assert old is None or path.read_bytes() == old


@pytest.mark.parametrize("name", ["fsync", "replace", "chmod"])
def test_a_failing_system_call_leaves_the_old_content(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"old")
    with monkeypatch.context() as patch:
        patch.setattr(os, name, failing(OSError(errno.EIO, "I/O error")))
        with pytest.raises(OSError, match=f"I/O error: {re.escape(repr(str(path)))}$"):
            atomic.write(path, b"new")
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == b"old"


def test_a_reader_never_sees_partial_content(tmp_path: Path) -> None:
    path = tmp_path / "x"
    contents = [bytes([value]) * 300_000 for value in range(4)]
    atomic.write(path, contents[0])
    done = threading.Event()

    def write() -> None:
        try:
            for i in range(40):
                with atomic.replacing(path) as file:
                    for start in range(0, 300_000, 50_000):
                        file.write(contents[i % 4][start : start + 50_000])
                        file.flush()
        finally:
            done.set()

    writer = threading.Thread(target=write)
    writer.start()
    seen = 0
    while not done.is_set():
        assert path.read_bytes() in contents
        seen += 1
    writer.join()
    assert seen > 0
    assert list(tmp_path.iterdir()) == [path]


@only_posix
def test_the_new_file_has_the_permissions_of_the_old_from_the_start(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"old")
    path.chmod(0o600)
    with atomic.replacing(path) as file:
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o600
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
def test_a_device_is_written_to(tmp_path: Path) -> None:
    link = tmp_path / "x"
    link.symlink_to("/dev/full")
    atomic.check(link)
    with pytest.raises(OSError, match="No space left on device") as caught:
        atomic.write(link, b"new")
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(link))
    assert list(tmp_path.iterdir()) == [link]
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


def test_errors_name_the_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    cases: list[tuple[Path, bool, type[OSError]]] = [
        (tmp_path, False, IsADirectoryError),
        (tmp_path / "no" / "x", False, FileNotFoundError),
        (tmp_path / "file" / "x", False, NotADirectoryError),
        (tmp_path / "file" / "x", True, NotADirectoryError),
    ]
    for path, parents, kind in cases:
        with pytest.raises(kind) as caught:
            atomic.check(path, parents=parents)
        assert caught.value.filename == str(path)
        with pytest.raises(kind) as caught:
            atomic.write(path, b"new", parents=parents)
        assert str(caught.value).endswith(f": {str(path)!r}")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_an_error_about_another_file_keeps_its_name(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught, atomic.replacing(tmp_path / "x"):
        (tmp_path / "other").read_bytes()
    assert caught.value.filename == str(tmp_path / "other")


def test_parent_folders_are_created_on_request(tmp_path: Path) -> None:
    atomic.write(tmp_path / "a" / "b" / "x", "é", parents=True)
    assert (tmp_path / "a" / "b" / "x").read_bytes() == "é".encode()


def test_a_name_without_a_folder_is_in_the_current_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    atomic.check("x", parents=True)
    atomic.write("x", "new", parents=True)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["new"]
