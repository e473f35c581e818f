"""``emberlint port --check``: tests before and after a port, and the cause of each that no longer passes."""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import emberlint
from ember_ml import get_available_backends
from ember_ml.backend import Backend
from emberlint import cli
from emberlint.commands import port as port_command
from emberlint.config import EMBER_TENSORS, Config
from emberlint.trial.commands import parsed
from emberlint.trial.descriptions import described
from emberlint.trial.differences import difference, type_difference
from emberlint.trial.divergences import divergence, other_arguments, stable, step
from emberlint.trial.errors import TrialError
from emberlint.trial.explanations import Found, cause
from emberlint.trial.projects import Project
from emberlint.trial.recorder import Calls, Files, Lines
from emberlint.trial.runs import Outcomes

ENGINES = get_available_backends()
PYTHON = shlex.quote(sys.executable)
# Plugins that are installed here cost a second in each of a dozen processes.
COMMAND = f"PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 {PYTHON} -m pytest -q -c setup.cfg tests"

CORE = """
import numpy as np


def doubled(x):
    return 2 * np.asarray(x)


def strides(x):
    x = np.asarray(x)
    return x.strides


def marked(n):
    x = np.zeros((n, n))
    rows = [x[0]]
    rows[0][1] = 5.0
    return x.sum()


def roots(x):
    return np.sqrt(np.asarray(x, dtype=np.int8))


def column(x):
    return np.reshape(np.asarray(x), (3, 1))
"""

TESTS = """
import numpy as np
import pytest

from tiny import core


def test_doubled():
    assert core.doubled([1, 2]).tolist() == [2, 4]


def test_strides():
    assert core.strides([1.0]) == (8,)


def test_marked():
    assert core.marked(3) == 5


def test_roots():
    assert str(core.roots([4]).dtype) == "float16"


def test_column():
    with pytest.raises(ValueError, match="cannot reshape array"):
        core.column([1.0])


def test_fails_before():
    assert core.doubled([1]) == 1
"""


def write(root: Path, core: str = CORE, tests: str = TESTS, package: str = "tiny") -> None:
    """Write a project with one package."""
    files = {"setup.cfg": "", f"{package}/__init__.py": "", f"{package}/core.py": core, "tests/test_core.py": tests}
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))


@contextlib.contextmanager
def inside(root: Path) -> Iterator[None]:
    """Work in a folder, with this version of ember for the processes that are started."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.setenv("PYTHONPATH", str(Path(emberlint.__file__).parents[1]))
        yield


def port(root: Path, *options: str, package: str = "tiny", command: str = COMMAND) -> tuple[int, str, str]:
    """Exit status, output and messages of a port with ``--check``."""
    out, err = io.StringIO(), io.StringIO()
    with inside(root), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = cli.main(["port", package, "--from", "numpy", "--check", command, *options])
    return status, out.getvalue(), err.getvalue()


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, str, str]:
    root = tmp_path_factory.mktemp("project")
    write(root)
    return root, *port(root, "--diff", "--engines", "numpy")


def group(report: str, test: str) -> list[str]:
    """Lines of the report about a test: that of its cause, and the indented ones up to the next cause."""
    lines = report[report.index("Tests that fail after the port") :].splitlines()[1:]
    starts = [i for i, line in enumerate(lines) if line.startswith("    ") and line[4] != " "]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        if any(line.strip().startswith(f"tests/test_core.py::{test} ") for line in lines[start:end]):
            return [line.strip() for line in lines[start:end]]
    raise AssertionError(f"{test} is not in\n{report}")


def test_counts(checked: tuple[Path, int, str, str]) -> None:
    _, status, report, messages = checked
    assert status == 1
    assert "pass after the port, with float64 as the default: 1 of 5 on numpy (20%)." in report
    assert "1 other test was skipped or failed before the port" in report
    assert "test_doubled" not in report
    assert "running the tests of the original" in messages
    assert "running the tests of the port on numpy (6 tests)" in messages


def test_every_installed_engine_is_the_default(tmp_path: Path) -> None:
    write(tmp_path)
    status, report, messages = port(tmp_path, command=f"{COMMAND} -k doubled")
    assert status == 0
    assert f"default: {', '.join(f'1 of 1 on {engine} (100%)' for engine in ENGINES)}." in report
    assert all(f"running the tests of the port on {engine} (1 test)" in messages for engine in ENGINES)
    assert "tensor" in (tmp_path / "tiny/core.py").read_text()


def recorded(root: Path, data: bytes, recorder: Calls | Lines) -> list[dict[str, Any]]:
    """What a recorder saw of the function ``marked`` of a module."""
    path = root / "tiny/core.py"
    path.write_bytes(data)
    space: dict[str, Any] = {"__name__": "core"}
    exec(compile(data, str(path), "exec"), space)
    recorder.start()
    try:
        space["marked"](3)
    finally:
        records = recorder.stop()
    return records


def test_recorders_find_the_line_on_every_engine(backend: Backend, tmp_path: Path) -> None:
    write(tmp_path)
    data = (tmp_path / "tiny/core.py").read_bytes()
    after = port_command.ported(data, "core.py", "numpy", Config(namespace=EMBER_TENSORS)).after
    files = Files(str(tmp_path), ["tiny/core.py"])
    calls = [recorded(tmp_path, version, Calls(files)) for version in (data, after)]
    known = divergence(*calls)
    assert known is not None
    assert known.call(0) == known.call(1) == ("tiny/core.py", "marked", 0)
    chosen = {("tiny/core.py", "marked"): {0}}
    steps = [recorded(tmp_path, version, Lines(files, chosen))[0]["steps"] for version in (data, after)]
    found = step(*steps, known.tolerance)
    assert found is not None
    assert (known.after["start"] + found.line, found.variable) == (17, "x")


def test_nothing_is_changed_with_diff(checked: tuple[Path, int, str, str]) -> None:
    root = checked[0]
    files = [path for path in root.rglob("*") if path.is_file()]
    assert len(files) == 4
    assert (root / "tiny/core.py").read_text() == CORE


def test_an_exception_names_the_line_that_raises_it(checked: tuple[Path, int, str, str]) -> None:
    lines = group(checked[2], "test_strides")
    assert lines[0].startswith(f"{os.path.join('tiny', 'core.py')}:11: `return x.strides` raises AttributeError: ")
    assert lines[1].startswith("named above: ")
    assert "strides" in lines[1]
    assert lines[2] == "tests/test_core.py::test_strides (numpy), fails at tests/test_core.py:13"


def test_a_lost_write_names_the_line_and_the_variable(checked: tuple[Path, int, str, str]) -> None:
    lines = group(checked[2], "test_marked")
    assert lines[0].startswith("tiny/core.py:17: `x` differs in `marked` after `rows[0][1] = 5.0`: [0 0 0")
    assert "before the port [0 5 0" in lines[0]


def test_a_changed_dtype_names_the_function_and_both(checked: tuple[Path, int, str, str]) -> None:
    lines = group(checked[2], "test_roots")
    assert lines[0].startswith('tests/test_core.py:21: the test, `assert str(core.roots([4]).dtype) == "float16"`')
    assert "`roots` (tiny/core.py:21) returns EmberTensor of float64, not ndarray of float16" in lines


def test_a_changed_message_names_the_place_of_the_error(checked: tuple[Path, int, str, str]) -> None:
    lines = group(checked[2], "test_column")
    assert lines[0].startswith("tests/test_core.py:25: the test, `with pytest.raises(ValueError, match=")
    assert any(line.startswith("it checks an error that tiny/core.py:26 raises: ValueError: ") for line in lines)


def test_a_port_that_is_written_is_checked_against_git(tmp_path: Path) -> None:
    write(tmp_path, package="src/tiny")
    (tmp_path / "setup.cfg").write_text("[tool:pytest]\n")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "before"]):
        subprocess.run([*git, *arguments], cwd=tmp_path, check=True)
    assert cli.main(["port", str(tmp_path / "src/tiny"), "--from", "numpy"]) == 0
    assert "ember_ml" in (tmp_path / "src/tiny/core.py").read_text()
    status, _, messages = port(tmp_path, package="src/tiny")
    assert status == 2
    assert "name the revision of git" in messages
    status, report, _ = port(
        tmp_path, "--engines", "numpy", "--base", "HEAD", package="src/tiny", command=f"{COMMAND} -k strides"
    )
    assert status == 1
    assert "core.py:11: `return x.strides` raises" in report


def test_a_package_that_cannot_be_imported_any_more(tmp_path: Path) -> None:
    core = """
        import numpy as np

        def steps():
            return np.zeros(3)

        SIZE = steps().strides
    """
    tests = """
        from tiny import core

        def test_one():
            assert core.SIZE

        def test_two():
            assert core.SIZE
    """
    write(tmp_path, core, tests)
    status, report, _ = port(tmp_path, "--engines", "numpy")
    assert status == 1
    lines = group(report, "test_one")
    assert lines[0].startswith("tiny/core.py:7: `SIZE = steps().strides` raises AttributeError")
    assert any("test_two" in line for line in lines)


@pytest.mark.parametrize(
    ("command", "tests", "options", "message"),
    [
        ("make test", TESTS, (), "must be a command that runs pytest"),
        ("python script.py pytest", TESTS, (), "must be a command that runs pytest"),
        ("no-such-program -m pytest", TESTS, (), "no program 'no-such-program' was found"),
        ("'pytest", TESTS, (), "No closing quotation"),
        (COMMAND, "", (), "pytest found no tests"),
        (COMMAND, "def test_one():\n    assert False\n", (), "no test passes before the port"),
        (COMMAND, "def test_one():\n    pass\n", (), "import none of the files"),
        (COMMAND, TESTS, ("--engines", "numpy,tinygrad"), "--engines: tinygrad cannot be imported"),
        (f"{COMMAND} --no-such-option", TESTS, (), "unrecognized arguments: --no-such-option"),
    ],
)
def test_errors(command: str, tests: str, options: tuple[str, ...], message: str, tmp_path: Path) -> None:
    write(tmp_path, tests=tests)
    status, report, messages = port(tmp_path, *options, command=command)
    assert (status, report) == (2, "")
    assert message in messages
    assert "no file was changed" in messages
    assert (tmp_path / "tiny/core.py").read_text() == CORE


def test_another_copy_of_the_package_is_an_error(tmp_path: Path) -> None:
    write(tmp_path / "installed")
    write(tmp_path / "project")
    other = str(tmp_path / "installed")
    (tmp_path / "project" / "tests" / "conftest.py").write_text(f"import sys\n\nsys.path.insert(0, {other!r})\n")
    status, _, messages = port(tmp_path / "project")
    assert status == 2
    assert f"the tests import tiny from {other}" in messages


def test_options_of_the_check_need_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path)
    assert cli.main(["port", str(tmp_path / "tiny"), "--from", "numpy", "--engines", "numpy"]) == 2
    assert "--engines and --base are options of --check" in capsys.readouterr().err


def test_commands() -> None:
    command = parsed(f"A=b {PYTHON} -m pytest tests -x")
    assert command.variables == {"A": "b"}
    assert command.words == (os.path.abspath(sys.executable), "-m", "pytest")
    assert command.arguments == ("tests", "-x")
    with pytest.raises(TrialError):
        parsed("")


@pytest.mark.parametrize("backend", ENGINES)
def test_numbers_and_tensors_are_compared_by_value(backend: str) -> None:
    import numpy as np

    import ember_ml
    from ember_ml.nn import tensor

    with ember_ml.use_backend(backend):
        pairs = [
            (np.float64(2.5), tensor.asarray(2.5, dtype="float32")),
            (2, tensor.asarray(2)),
            (np.arange(6.0).reshape(2, 3), tensor.reshape(tensor.arange(6.0), (2, 3))),
            ([1.0, 2.0], tensor.asarray([1.0, 2.0])),
            ({"a": [np.float64(1.0)]}, {"a": [tensor.asarray(1.0)]}),
            (np.arange(1000), tensor.arange(1000)),
        ]
        for one, other in pairs:
            assert difference(described(one), described(other), 1e-5) is None
        assert type_difference(described(pairs[0][0]), described(pairs[0][1])) is not None
        changed = tensor.arange(1000)
        changed[777] = 0
        for one, other in (
            (np.arange(1000), changed),
            (np.zeros((1, 2)), tensor.zeros(2)),
            ({"a": 1}, {"b": 1}),
            ([1, 2], [1]),
            ("a", "b"),
            (1.0, tensor.asarray(1.1)),
            (None, tensor.asarray(1.0)),
        ):
            assert difference(described(one), described(other), 1e-5) is not None


def call(result: object, **given: object) -> dict[str, Any]:
    """Record of a call of one function of a package by a test."""
    return {
        "file": "tiny/core.py",
        "function": "f",
        "start": 3,
        "line": 4,
        "index": 0,
        "outer": True,
        "given": {name: described(value) for name, value in given.items()},
        "changed": {},
        "result": described(result),
    }


@pytest.mark.parametrize(("result", "place"), [(1 + 1e-13, "tests/test_core.py"), (1.1, "tiny/core.py")])
def test_differences_of_the_last_digits_do_not_hide_what_the_test_checks(result: float, place: str) -> None:
    known = divergence([call(1.0, x=2)], [call(result, x=2)])
    assert known is not None
    assert known.is_rounding() == (place != "tiny/core.py")
    frames = [["tests/test_core.py", 9, "test_f", "assert type(core.f(2)) is float"]]
    record = {"outcome": "failed", "error": "AssertionError", "message": "", "frames": frames, "context": None}
    outcomes = Outcomes({"test_f": record}, [], None)
    project = Project("", {"tiny/core.py": "tiny.core"})
    found = cause(
        "test_f", outcomes, Found(known, None, None, None), project, {"tiny/core.py": b"\n\ndef f(x):\n  1\n"}
    )
    assert found.file == place
    assert "the result of `f` differs" in " ".join([found.text, *found.facts])


def test_a_function_is_not_blamed_for_other_arguments_or_unstable_results() -> None:
    before, after = [call(1.0, x=1), call(5.0, x=3)], [call(2.0, x=2), call(6.0, x=3)]
    known = divergence(before, after)
    assert known is not None
    assert known.after is after[1]
    assert divergence(stable(before, [call(1.0, x=1), call(7.0, x=3)]), after) is None
    assert divergence(before, [after[0]]) is None
    other = other_arguments(before, after)
    assert other is not None
    assert other.what == "x"
