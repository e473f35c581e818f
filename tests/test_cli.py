"""The command line, in this process and as users start it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ember_ml
from ember_ml import backend as backends
from ember_ml import cli, demo
from ember_ml.backend import Home
from ember_ml.dispatch import fast
from ember_ml.errors import UnsupportedError
from emberlint import atomic


@pytest.fixture(autouse=True)
def _unchosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process that has chosen no backend yet, with an empty home."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("COLUMNS", raising=False)
    ember_ml.clear_backend()
    yield
    ember_ml.set_backend("numpy")


class Ran:
    """What a command line left behind."""

    def __init__(self, status: int, captured: Any) -> None:
        self.status, self.out, self.err = status, captured.out, captured.err


@pytest.fixture
def ember(capsys: pytest.CaptureFixture[str]) -> Any:
    """A function that runs a command line in this process."""

    def run(*arguments: str) -> Ran:
        try:
            status = cli.main(arguments)
        except SystemExit as end:
            status = int(end.code or 0)
        return Ran(status, capsys.readouterr())

    return run


def started(*arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
    """Run a command line in a separate process."""
    command = [sys.executable, "-m", "ember_ml", *arguments]
    return subprocess.run(command, env={**os.environ, **changes}, capture_output=True, text=True, check=False)


def test_version(ember: Any) -> None:
    ran = ember("--version")
    assert (ran.status, ran.out) == (0, f"ember-ml {ember_ml.__version__}\n")


@pytest.mark.parametrize("arguments", [["--help"], [], ["info", "--help"], ["backend", "--help"], ["demo", "--help"]])
def test_help_names_the_program(ember: Any, arguments: list[str]) -> None:
    ran = ember(*arguments)
    assert ran.status == 0
    assert ran.out.startswith("usage: ember-ml")
    assert ran.err == ""


@pytest.mark.parametrize("arguments", [["--help"], ["backend", "--help"], ["demo", "--help"]])
def test_help_has_examples_that_parse(ember: Any, arguments: list[str]) -> None:
    lines = ember(*arguments).out.partition("examples:\n")[2].splitlines()
    commands = [line.split("  ")[1].split() for line in lines if line.startswith("  ember-ml")]
    assert commands
    for command in commands:
        cli._parser().parse_args(command[1:])


def test_help_loads_no_engine_and_no_rich() -> None:
    code = (
        "import sys; from ember_ml.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print([m for m in ('numpy', 'torch', 'mlx', 'rich', 'asyncio') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n")


def test_info_tells_engines_and_the_reason(ember: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBER_ML_BACKEND", "numpy")
    ran = ember("info")
    assert ran.status == 0
    assert "active backend: numpy, by environment variable EMBER_ML_BACKEND" in ran.out
    assert f"Ember ML {ember_ml.__version__}" in ran.out
    assert "default dtype: float32" in ran.out
    assert f"dispatch: {'C extension' if fast.has_extension() else 'Python'}" in ran.out
    for name in backends.OWN:
        assert name in ran.out


def test_info_says_why_there_is_no_extension(ember: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast, "_c", None)
    monkeypatch.delenv("EMBER_ML_PURE_PYTHON", raising=False)
    assert f"dispatch: Python: there is no C extension in {Path(ember_ml.__file__).parent}" in ember("info").out
    monkeypatch.setenv("EMBER_ML_PURE_PYTHON", "1")
    assert "dispatch: Python, by environment variable EMBER_ML_PURE_PYTHON" in ember("info").out


def test_info_tells_what_is_active_from_what_is_loaded(ember: Any) -> None:
    for active in ember_ml.get_available_backends():
        backends.set_backend(active)
        states = {name: "active" if name == active else "loaded" for name in ember_ml.get_available_backends()}
        for name in states:
            backends.load(name)
        rows = [line.split() for line in ember("info").out.splitlines()]
        assert {row[0]: row[-1] for row in rows if row and row[0] in states} == states


def test_info_for_machines(ember: Any, tmp_path: Path) -> None:
    (tmp_path / ".ember").mkdir()
    (tmp_path / ".ember" / "backend").write_text("numpy\n")
    facts = json.loads(ember("info", "--json").out)
    assert facts["backend"] == "numpy"
    assert facts["source"] == f"file {tmp_path / '.ember' / 'backend'}"
    assert facts["default_dtype"] == "float32"
    assert facts["extension"] == fast.has_extension()
    engines = {engine["name"]: engine for engine in facts["engines"]}
    assert set(engines) == set(backends.homes())
    for name in ember_ml.get_available_backends():
        assert engines[name]["installed"]
        assert engines[name]["version"]
        assert "cpu" in engines[name]["devices"]
    assert [name for name, engine in engines.items() if engine["active"]] == ["numpy"]
    assert engines["numpy"]["loaded"]


def test_info_says_how_to_install_and_what_fails(ember: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBER_ML_BACKEND", "numpy")
    absent, broken = (
        Home("no_engine", "no_engine", "pip install 'no[engine]'"),
        Home("no_module", "json", "pip install it"),
    )
    monkeypatch.setattr(backends, "OWN", {**backends.OWN, "absent": absent, "broken": broken})
    engines = {engine["name"]: engine for engine in json.loads(ember("info", "--json").out)["engines"]}
    assert not engines["absent"]["installed"]
    assert engines["broken"]["error"] == "No module named 'no_module'"
    shown = " ".join(ember("info").out.split())
    assert "not installed: pip install 'no[engine]'" in shown
    assert "fails to import: No module named 'no_module'" in shown


def test_info_shows_the_rest_when_the_choice_is_bad(ember: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBER_ML_BACKEND", "abacus")
    ran = ember("info")
    assert ran.status == 2
    assert "active backend: none" in ran.out
    assert ran.err.startswith("ember-ml: error: environment variable EMBER_ML_BACKEND: the name of a backend must be")
    assert json.loads(ember("info", "--json").out)["backend"] is None


def test_a_choice_is_kept_shown_and_cleared(ember: Any, tmp_path: Path) -> None:
    path = tmp_path / ".ember" / "backend"
    ran = ember("backend", "set", "numpy")
    assert (ran.status, ran.out, ran.err) == (0, f"numpy is the default from now on ({path})\n", "")
    assert path.read_text() == "numpy\n"
    ember_ml.clear_backend()
    assert f"active backend: numpy, by file {path}" in ember("backend", "show").out
    assert ember("backend", "clear").out == f"removed {path}, which said numpy\n"
    assert not path.exists()
    assert ember("backend", "clear").out == f"nothing to remove: there is no {path}\n"


def test_backend_commands_for_machines(ember: Any, tmp_path: Path) -> None:
    path = str(tmp_path / ".ember" / "backend")
    said = {"backend": "numpy", "device": None, "file": path}
    assert json.loads(ember("backend", "set", "numpy", "--json").out) == said
    ember_ml.clear_backend()
    expected = {"backend": "numpy", "source": f"file {path}", "environment": None, "file": path, "kept": "numpy"}
    expected |= {"device": "cpu", "device_source": "detection"}
    for arguments in (["backend", "show", "--json"], ["backend", "--json"], ["backend", "--json", "show"]):
        assert json.loads(ember(*arguments).out) == expected
    assert json.loads(ember("backend", "clear", "--json").out) == {"removed": True, "kept": "numpy", "file": path}


def test_show_tells_every_place(ember: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ember("backend", "set", "numpy")
    ember_ml.set_backend("numpy")
    assert "by set_backend" in ember("backend").out
    ember_ml.clear_backend()
    monkeypatch.setenv("EMBER_ML_BACKEND", "numpy")
    ran = ember("backend")
    assert "by environment variable EMBER_ML_BACKEND" in ran.out
    monkeypatch.delenv("EMBER_ML_BACKEND")
    ember("backend", "clear")
    assert "by detection: neither the environment variable" in ember("backend").out


def test_set_warns_that_the_variable_goes_first(ember: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBER_ML_BACKEND", "torch")
    ran = ember("backend", "set", "numpy")
    assert ran.status == 0
    assert ran.err == "ember-ml: note: EMBER_ML_BACKEND=torch goes before that file\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["abacus"],
        ["backend", "forget"],
        ["backend", "set"],
        ["backend", "set", "abacus"],
        ["backend", "set", "numpy.differentiation"],
        ["backend", "set", ""],
        ["info", "--loud"],
        ["demo", "--backend", "abacus"],
        ["demo", "--backend"],
        ["demo", "--epochs", "0"],
        ["demo", "--epochs", "many"],
        ["demo", "--model", "oracle"],
        ["demo", "--seed", "x"],
        ["demo", "--seed", "-1"],
        ["demo", "--seed", str(2**64)],
        ["ops", "check", "no.json", "--seed", "x"],
    ],
)
def test_bad_input_is_one_line_and_two(ember: Any, arguments: list[str], tmp_path: Path) -> None:
    ran = ember(*arguments)
    assert ran.status == 2
    assert ran.out == ""
    assert ran.err.startswith("ember-ml")
    assert ran.err.count("\n") == 1
    assert not (tmp_path / ".ember" / "backend").exists()


@pytest.mark.parametrize("arguments", [["backend", "show"], ["info"]])
def test_an_unreadable_choice_is_one_line(ember: Any, tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / ".ember").mkdir()
    (tmp_path / ".ember" / "backend").write_bytes(b"\xff\xfe")
    ran = ember(*arguments)
    assert ran.status == 2
    assert ran.err.startswith(f"ember-ml: error: the backend choice in {tmp_path}/.ember/backend must be")
    assert ran.err.count("\n") == 1
    cleared = ember("backend", "clear")
    assert cleared.status == 0
    assert "which said nothing" in cleared.out


def test_a_home_that_cannot_be_written_is_one_line(ember: Any, tmp_path: Path) -> None:
    (tmp_path / ".ember").write_text("a file where a folder should be")
    ran = ember("backend", "set", "numpy")
    assert ran.status == 1
    assert ran.err.startswith("ember-ml: error:")
    assert ran.err.count("\n") == 1


def test_ctrl_c_ends_quietly(ember: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "run", interrupted)
    ran = ember("demo", "--backend", "numpy")
    assert (ran.status, ran.out, ran.err) == (130, "", "")


@pytest.mark.skipif(os.name != "posix", reason="pipes break differently elsewhere")
@pytest.mark.parametrize("command", ["--help", "info", "info --json"])
def test_a_broken_pipe_ends_quietly(command: str) -> None:
    script = f"{sys.executable} -m ember_ml {command} | true; echo ${{PIPESTATUS[0]}}"
    environment = {**os.environ, "EMBER_ML_BACKEND": "numpy", "PYTHONUNBUFFERED": ""}
    done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    # The pipe may also outlive a short text.
    assert int(done.stdout) in (0, 128 + signal.SIGPIPE)


def test_writing_to_a_closed_pipe_is_141(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        monkeypatch.setattr(sys, "stdout", closed)
        assert cli.main(["backend", "clear"]) == 141


@pytest.mark.skipif(os.name != "posix", reason="a shell closes a stream")
@pytest.mark.parametrize("command", ["info", "info --json", "backend clear", "ops matrix --format csv", "--help"])
def test_an_output_that_is_closed_is_as_good_as_none(command: str) -> None:
    script = f"{sys.executable} -m ember_ml {command} >&-"
    environment = {**os.environ, "EMBER_ML_BACKEND": "numpy"}
    done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
def test_a_full_disk_is_one_line() -> None:
    environment = {**os.environ, "EMBER_ML_BACKEND": "numpy", "PYTHONUNBUFFERED": ""}
    with open("/dev/full", "wb") as full:
        program = [sys.executable, "-m", "ember_ml", "backend", "show"]
        done = subprocess.run(program, stdout=full, stderr=subprocess.PIPE, env=environment, check=False)
    assert (done.returncode, done.stderr) == (1, b"ember-ml: error: [Errno 28] No space left on device\n")


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
@pytest.mark.parametrize("command", ["backend set numpy", "backend clear"])
def test_a_home_that_the_output_cannot_spell(command: str, encoding: str, tmp_path: Path) -> None:
    home = tmp_path / "größe→"
    home.mkdir()
    environment = {**os.environ, "EMBER_ML_BACKEND": "numpy", "HOME": str(home), "PYTHONIOENCODING": encoding}
    program = [sys.executable, "-m", "ember_ml", *command.split()]
    done = subprocess.run(program, env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\\u2192" in done.stdout


@pytest.mark.skipif(os.name != "posix", reason="pipes have names")
def test_what_is_no_plain_file_is_written_into_and_not_replaced(tmp_path: Path) -> None:
    wanted = started("ops", "matrix", "--backend", "numpy", "--format", "csv").stdout
    shown = started("ops", "matrix", "--backend", "numpy", "--format", "csv", "--out", "/dev/stdout")
    assert (shown.returncode, shown.stdout, shown.stderr) == (0, wanted, "")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    found: list[str] = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_text(encoding="utf-8")), daemon=True)
    reader.start()
    atomic.write(pipe, wanted)
    reader.join(10)
    assert found == [wanted]
    assert pipe.is_fifo()
    (tmp_path / "file").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    atomic.write(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "new"


def test_a_file_where_a_folder_should_be_is_named(ember: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ran = ember("ops", "matrix", "--backend", "numpy", "--format", "csv", "--out", str(tmp_path / "file" / "a.csv"))
    assert ran.status == 1
    assert ran.err == f"ember-ml: error: [Errno 20] Not a directory: '{tmp_path / 'file' / 'a.csv'}'\n"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_that_knows_few_characters(encoding: str) -> None:
    done = started("ops", "matrix", "--backend", "numpy", PYTHONIOENCODING=encoding, COLUMNS="30")
    assert (done.returncode, done.stderr) == (0, "")
    assert "numpy: " in done.stdout


def test_what_nobody_looks_at_has_one_line_for_a_row(ember: Any) -> None:
    ran = ember("ops", "list", "--category", "losses")
    rows = [line.strip() for line in ran.out.splitlines() if "(" in line]
    assert ran.out.endswith(f"{len(rows)} operations\n")
    assert all(row.endswith(("own", "defined")) for row in rows)


def test_as_a_module_in_a_fresh_process(tmp_path: Path) -> None:
    done = started("backend", "show", "--json", HOME=str(tmp_path), EMBER_ML_BACKEND="numpy")
    assert done.returncode == 0
    assert json.loads(done.stdout)["source"] == "environment variable EMBER_ML_BACKEND"
    failed = started("backend", "show", HOME=str(tmp_path), EMBER_ML_BACKEND="abacus")
    assert failed.returncode == 2
    assert "Traceback" not in failed.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory that the demonstration may draw its picture in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_demo_prints_one_table_and_draws(ember: Any, in_folder: Path) -> None:
    ran = ember("demo", "--epochs", "2")
    assert ran.status == 0
    assert ran.err == ""
    for name in ember_ml.get_available_backends():
        assert name in ran.out
    assert "largest difference" in ran.out
    assert "test accuracy" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80
    assert (in_folder / "ember-ml-demo.png").exists()


def test_demo_for_machines(ember: Any, in_folder: Path) -> None:
    facts = json.loads(ember("demo", "--epochs", "1", "--seed", "3", "--plot", "a.png", "--json").out)
    assert (facts["model"], facts["seed"]) == ("mlp", 3)
    assert [run["backend"] for run in facts["runs"]] == ember_ml.get_available_backends()
    assert facts["largest_disagreement"] is None or facts["largest_disagreement"] < 1e-4
    assert (in_folder / "a.png").exists()


def test_demo_serves_with_numpy_alone(ember: Any, in_folder: Path) -> None:
    printed = ember("demo", "--backend", "numpy", "--epochs", "1", "--seed", str(2**64 - 1)).out
    assert "only one ran" in printed
    assert printed.startswith(f"mlp on handwritten digits, seed {2**64 - 1}: loss by epoch\n")
    named = json.loads(ember("demo", "--backend", "numpy", "--backend", "numpy", "--epochs", "1", "--json").out)
    assert [run["backend"] for run in named["runs"]] == ["numpy"]
    assert named["largest_disagreement"] is None


def test_demo_does_without_a_picture(ember: Any, in_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    ran = ember("demo", "--backend", "numpy", "--epochs", "1")
    assert ran.status == 0
    assert "pip install 'ember-ml[plot]'" in ran.out


@pytest.mark.parametrize("plot", ["nowhere/curves.png", "curves.unknown"])
def test_demo_shows_its_figures_where_it_cannot_draw(plot: str, ember: Any, in_folder: Path) -> None:
    ran = ember("demo", "--backend", "numpy", "--epochs", "1", "--plot", plot)
    assert ran.status == 0
    assert "test accuracy" in ran.out
    assert "there is no picture: " in ran.out


@pytest.mark.parametrize("arguments", [["list"], ["list", "--json"], ["matrix"], ["matrix", "--format", "csv"]])
def test_operations_are_listed_without_an_engine_that_fails(
    arguments: list[str], ember: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = ember("ops", *arguments)
    monkeypatch.setattr(backends, "OWN", {**backends.OWN, "broken": Home("no_module", "json", "pip install it")})
    ran = ember("ops", *arguments)
    assert (ran.status, ran.out) == (0, whole.out)
    assert ran.err.startswith("ember-ml: error: broken is left out: the broken backend")
    assert ran.err.count("\n") == 1
    asked = ember("ops", "matrix", "--backend", "broken")
    assert (asked.status, asked.out) == (2, "")


def test_demo_leaves_out_an_engine_that_cannot(ember: Any, in_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "OWN", {**backends.OWN, "broken": Home("no_module", "json", "pip install it")})
    ran = ember("demo", "--epochs", "1")
    assert ran.status == 0
    assert "broken is left out" in ran.err

    def unable(*_: object) -> None:
        raise UnsupportedError("nothing works")

    monkeypatch.setattr(demo, "run", unable)
    assert ember("demo").status == 1
    assert ember("demo", "--backend", "numpy").err == "ember-ml: error: nothing works\n"
