"""Paths that cannot be read: each is one line of warning, and the rest is checked."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from emberlint import atomic
from emberlint import config as configuration
from emberlint.cli import main
from emberlint.lint import listing, runner
from emberlint.source import files

BAD = "import numpy as np\n"
WARNING = "emberlint: warning: {}: {}; not checked\n"

pytestmark = pytest.mark.skipif(os.name != "posix", reason="links, FIFOs and sockets are those of POSIX")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Current folder with a file that has one finding."""
    configuration.load.cache_clear()
    tmp_path.chmod(0o755)
    (tmp_path / "bad.py").write_text(BAD, encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text('[tool.emberlint]\nselect = ["EMB0", "EMB1"]\n', encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def loop(path: Path) -> None:
    path.symlink_to(path.name)


def nowhere(path: Path) -> None:
    path.symlink_to("absent")


def fifo(path: Path) -> None:
    os.mkfifo(path)


def link_to_fifo(path: Path) -> None:
    os.mkfifo(path.with_suffix(".fifo"))
    path.symlink_to(path.with_suffix(".fifo").name)


def unix_socket(path: Path) -> None:
    with closing(socket.socket(socket.AF_UNIX)) as bound:
        bound.bind(path.name)  # the full path may exceed the maximum length of a socket name


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


ODDITIES = {
    loop: "Too many levels of symbolic links",
    nowhere: "No such file or directory",
    fifo: "Not a regular file (FIFO)",
    link_to_fifo: "Not a regular file (FIFO)",
    unix_socket: "Not a regular file (socket)",
    device: "Not a regular file (character device)",
    huge: "Larger than 64 MiB",
}


@pytest.mark.parametrize("named", [False, True], ids=["in a folder", "named"])
@pytest.mark.parametrize(("make", "reason"), ODDITIES.items(), ids=[make.__name__ for make in ODDITIES])
def test_unreadable_paths_are_warnings(
    make: Callable[[Path], None], reason: str, named: bool, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(folder / "a.py")
    assert main(["--output-format", "concise", *(["a.py", "bad.py"] if named else ["."])]) == 2
    printed = capsys.readouterr()
    assert printed.err == WARNING.format("a.py", reason)
    assert printed.out.startswith("bad.py:1:8: EMB101 ")
    assert printed.out.endswith("1 finding in 1 file; 1 fixable with --fix; 1 path was not checked.\n")


@contextmanager
def unprivileged() -> Iterator[None]:
    """Run as another user, because root may read everything."""
    if os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_paths_without_permission_are_warnings(kind: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["."])  # load every module first, because the other user may not be allowed to read them
    if kind == "file":
        path = folder / "a.py"
        path.write_text(BAD, encoding="utf-8")
    else:
        path = folder / "a"
        path.mkdir()
        (path / "b.py").write_text(BAD, encoding="utf-8")
    path.chmod(0)
    capsys.readouterr()
    try:
        with unprivileged():
            assert main(["--no-cache", "--select", "EMB101", "--output-format", "concise", "."]) == 2
    finally:
        path.chmod(0o700)
    printed = capsys.readouterr()
    assert printed.err == WARNING.format(path.name, "Permission denied")
    assert printed.out.startswith("bad.py:1:8: EMB101 ")


@pytest.mark.parametrize(
    ("make", "reason"),
    [(Path.exists, "No such file or directory"), (fifo, ODDITIES[fifo]), (loop, ODDITIES[loop])],
    ids=["gone", "fifo", "loop"],
)
def test_a_file_that_changes_after_it_was_listed_is_a_warning(
    make: Callable[[Path], object],
    reason: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    changed = folder / "a.py"
    changed.write_text(BAD, encoding="utf-8")
    listed_files = listing.files

    def changing(*arguments: object) -> Iterator[str]:
        listed = list(listed_files(*arguments))  # type: ignore[arg-type]
        changed.unlink()
        make(changed)
        yield from listed

    monkeypatch.setattr(listing, "files", changing)
    assert main(["."]) == 2
    printed = capsys.readouterr()
    assert printed.err == WARNING.format("a.py", reason)
    assert "1 finding in 1 file" in printed.out


def test_a_file_that_vanishes_after_it_was_linted(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Project rules read a file again, for its suppressions."""
    (folder / "pyproject.toml").write_text('[tool.emberlint]\nselect = ["EMB111"]\n', encoding="utf-8")
    stray = folder / "shop" / "torch"
    stray.mkdir(parents=True)
    for package in (stray, stray.parent):
        (package / "__init__.py").write_text("import torch\n", encoding="utf-8")
    project = runner._project

    def later(*arguments: object) -> object:
        (stray / "__init__.py").unlink()
        return project(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(runner, "_project", later)
    assert main(["--output-format", "concise", "."]) == 1
    printed = capsys.readouterr()
    assert printed.err == ""
    assert printed.out.startswith("shop/torch/__init__.py:1:1: EMB111 ")


def test_a_file_that_grows_is_read_to_the_size_it_had(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder / "a.py"
    path.write_bytes(b"x = 1\n" * 20_000)
    size = path.stat().st_size
    status_of = os.fstat

    def growing(handle: int) -> os.stat_result:
        status = status_of(handle)
        with path.open("ab") as file:
            file.write(b"x = 2\n" * 20_000)
        return status

    with monkeypatch.context() as patch:
        patch.setattr(os, "fstat", growing)
        assert files.read(str(path)) == b"x = 1\n" * 20_000
    assert path.stat().st_size > size


def test_a_file_that_is_written_after_it_was_read_is_read_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.utime(folder / "bad.py", (1e9, 1e9))
    read = files.read

    def growing(path: str, *limit: int) -> bytes:
        data = read(path, *limit)
        if path == "bad.py":
            with open(path, "ab") as file:
                file.write(b"import torch\n")
        return data

    config = configuration.load(".")
    with monkeypatch.context() as patch:
        patch.setattr(files, "read", growing)
        assert len(runner.run(["."], config).findings) == 1
    assert len(runner.run(["."], config).findings) == 2


def test_names_that_do_not_decode(folder: Path) -> None:
    name = os.fsdecode(b"caf\xe9")
    try:
        (folder / name).mkdir()
    except OSError:
        pytest.skip("this file system has names that are text alone")
    (folder / name / f"{name}.py").write_text(BAD, encoding="utf-8")
    (folder / f"{name}.py").symlink_to("absent")
    for _ in range(2):  # the second time from the cache
        done = subprocess.run([sys.executable, "-m", "emberlint", "."], capture_output=True, check=False)
        assert done.returncode == 2
        assert done.stderr == b"emberlint: warning: caf\\udce9.py: No such file or directory; not checked\n"
        assert b"2 findings in 2 files" in done.stdout


def test_links_to_folders_are_not_followed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "deep").mkdir()
    (folder / "deep" / "up").symlink_to("..")
    (folder / "deep" / "up.py").symlink_to("..")
    assert main(["."]) == 1
    printed = capsys.readouterr()
    assert (printed.err, "1 finding in 1 file" in printed.out) == ("", True)


def test_excluded_paths_are_not_warnings(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fifo(folder / "a.py")
    (folder / "pyproject.toml").write_text('[tool.emberlint]\nexclude = ["a.py"]\n', encoding="utf-8")
    assert main(["bad.py", "."]) == 1
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "arguments",
    [["why", "a.py:1"], ["--baseline", "a.py", "."], ["baseline", "stats", "--baseline", "a.py"]],
    ids=" ".join,
)
def test_commands_do_not_wait_for_a_fifo(
    arguments: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fifo(folder / "a.py")
    assert main(arguments) == 2
    assert "a.py" in capsys.readouterr().err


def test_port_warns_as_well(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fifo(folder / "a.py")
    (folder / "bad.py").write_text("import numpy as np\nx = np.pi\n", encoding="utf-8")
    assert main(["port", ".", "--from", "numpy"]) == 2
    printed = capsys.readouterr()
    assert printed.err == WARNING.format("a.py", "Not a regular file (FIFO)")
    assert "1 of 1 files rewritten" in printed.out
    assert (folder / "bad.py").read_text(encoding="utf-8") == "from ember_ml.nn import tensor\nx = tensor.pi\n"


def test_fix_writes_the_writable_files(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "a.py").write_text(BAD, encoding="utf-8")
    write = atomic.write

    def full(path: str, data: bytes) -> None:
        if path == "a.py":
            raise OSError(28, "No space left on device", path)
        write(path, data)

    monkeypatch.setattr(atomic, "write", full)
    assert main(["--no-cache", "--fix", "."]) == 2
    printed = capsys.readouterr()
    assert printed.err == "emberlint: warning: a.py: cannot be written: No space left on device\n"
    assert (folder / "a.py").read_text(encoding="utf-8") == BAD
    assert (folder / "bad.py").read_text(encoding="utf-8") == ""
    assert printed.out.endswith("1 finding in 1 file; 1 fixable with --fix; 1 fixed.\n")


def test_a_baseline_is_not_written_if_a_path_is_unreadable(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["baseline", "update"]) == 0
    before = (folder / "emberlint-baseline.json").read_bytes()
    fifo(folder / "a.py")
    (folder / "bad.py").unlink()
    capsys.readouterr()
    assert main(["baseline", "update"]) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith(WARNING.format("a.py", "Not a regular file (FIFO)"))
    assert "the baseline was not written" in printed.err
    assert (folder / "emberlint-baseline.json").read_bytes() == before


def test_unchecked_entries_are_not_stale(folder: Path) -> None:
    assert main(["baseline", "update"]) == 0
    (folder / "bad.py").unlink()
    fifo(folder / "bad.py")
    assert main(["--baseline", "emberlint-baseline.json", "--output-format", "json", "."]) == 2
    entries = json.loads((folder / "emberlint-baseline.json").read_text(encoding="utf-8"))["findings"]
    assert len(entries) == 1
    assert stat.S_ISFIFO((folder / "bad.py").stat().st_mode)
