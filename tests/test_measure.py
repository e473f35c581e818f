"""Measuring: same results are distinguished from different ones, and no operation can stop a run."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ember_ml
from ember_ml import backend as backends
from ember_ml import cli
from ember_ml.dispatch import REGISTRY
from ember_ml.dtypes import DTYPES
from ember_ml.testing import inputs, samples
from ember_ml.testing.inputs import Case
from ember_ml.tools import FORMAT, LOCK, STATUSES, UsageError, measuring, workers
from ember_ml.tools.workers import Outcome, difference, together

ENGINES = ember_ml.get_available_backends()

# Of the engines other than the reference, the one that starts fastest: workers start many times here.
OTHER = next((name for name in ("mlx", "torch") if name in ENGINES), "numpy")

two_engines = pytest.mark.skipif(OTHER == "numpy", reason="there is no second engine to compare with the reference")

PLANTED = '''"""Operations that misbehave on every engine but the reference."""

import itertools
import os
import signal
import time

import ember_ml
from ember_ml.dtypes import free
from ember_ml.dispatch import op
from ember_ml.ops import add, astype, multiply
from ember_ml.types import Tensor, TensorLike

count = itertools.count()


def elsewhere():
    return ember_ml.get_backend() != "numpy"


@op(free)
def good(x: TensorLike, /, *, factor: float = 2.0) -> Tensor:
    """Twice ``x``.

    >>> good([1.0]).tolist()
    [2.0]
    """
    return multiply(x, factor)


@op(free)
def hanging(x: TensorLike, /) -> Tensor:
    """``x``, some day.

    >>> hanging([1.0]).tolist()
    [1.0]
    """
    while elsewhere():
        time.sleep(0.1)
    return add(x, 0)


@op(free)
def crashing(x: TensorLike, /) -> Tensor:
    """``x``, unless the process ends.

    >>> crashing([1.0]).tolist()
    [1.0]
    """
    if elsewhere():
        os.kill(os.getpid(), signal.SIGSEGV)
    return add(x, 0)


@op(free)
def crashing_once(x: TensorLike, /) -> Tensor:
    """``x``; the process dies if it is empty.

    >>> crashing_once([1.0, 2.0]).tolist()
    [1.0, 2.0]
    """
    if elsewhere() and x.shape == (0,):
        os.kill(os.getpid(), signal.SIGKILL)
    return add(x, 0)


@op(free)
def flaky(x: TensorLike, /) -> Tensor:
    """``x``, or a little more.

    >>> flaky([1.0]).tolist()
    [1.0]
    """
    return add(x, next(count) % 2) if elsewhere() else add(x, 0)


@op(free)
def differing(x: TensorLike, /) -> Tensor:
    """``x``.

    >>> differing([1.0]).tolist()
    [1.0]
    """
    return add(x, 1) if elsewhere() else add(x, 0)


@op(free)
def failing(x: TensorLike, /) -> Tensor:
    """``x``.

    >>> failing([1.0]).tolist()
    [1.0]
    """
    if elsewhere():
        raise OSError("not here")
    return add(x, 0)


@op(free)
def widening(x: TensorLike, /) -> Tensor:
    """``x``.

    >>> widening([1.0]).tolist()
    [1.0]
    """
    return astype(x, "complex64") if elsewhere() else add(x, 0)


@op(free)
def undocumented(x: TensorLike, /) -> Tensor:
    """``x``, without an example."""
    return add(x, 0)


@op(free)
def crashing_everywhere(x: TensorLike, /) -> Tensor:
    """Nothing.

    >>> crashing_everywhere([1.0]).tolist()
    [1.0]
    """
    os.abort()
'''

EXPECTED = {
    "good": "same",
    "hanging": "hang",
    "crashing": "crash",
    "crashing_once": "crash",
    "flaky": "flaky",
    "differing": "differs",
    "failing": "fails",
    "widening": "differs",
    "undocumented": "unmeasured",
    "crashing_everywhere": "unmeasured",
}


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The matrix of operations that misbehave."""
    folder = tmp_path_factory.mktemp("planted")
    (folder / "planted.py").write_text(PLANTED)
    sys.path.insert(0, str(folder))
    try:
        matrix = measuring.measure(list(EXPECTED), engines=[OTHER], modules=["planted"], limit=1.0, jobs=2)
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop("planted", None)
    found: dict[str, Any] = matrix["operations"]
    return found


@two_engines
@pytest.mark.parametrize("name", EXPECTED)
def test_misbehaviour_is_a_result(planted: dict[str, Any], name: str) -> None:
    engines = planted[name]["engines"]
    assert engines[OTHER]["status"] == EXPECTED[name]
    reference = {"crashing_everywhere": "crash", "undocumented": "unmeasured"}
    assert engines["numpy"]["status"] == reference.get(name, "same")


@two_engines
def test_one_bad_input_leaves_the_others_measured(planted: dict[str, Any]) -> None:
    entry = planted["crashing_once"]["engines"][OTHER]
    assert entry["dtypes"]["float32"] == "same"
    assert entry["cases"] == planted["crashing_once"]["engines"]["numpy"]["cases"]
    assert {"input": "crashing_once(float32[0])", "what": "crash"} in entry["differences"]


@two_engines
def test_differences_show_both_results(planted: dict[str, Any]) -> None:
    found = planted["differing"]["engines"][OTHER]["differences"]
    assert {
        "input": "differing([1.0])",
        "what": "value",
        "reference": "float32[1] [1.0]",
        "engine": "float32[1] [2.0]",
    } in found
    assert len(found) <= workers.MOST_DIFFERENCES
    assert planted["widening"]["engines"][OTHER]["differences"][0]["what"] == "dtype"
    assert planted["failing"]["engines"][OTHER]["differences"][0]["engine"] == "OSError"


@two_engines
def test_keywords_are_measured(planted: dict[str, Any]) -> None:
    for entry in planted["good"]["engines"].values():
        assert entry["keywords"] == {"factor": "same"}


def test_every_operation_has_inputs_that_it_takes() -> None:
    """All inputs are made from records and docstrings, so a new operation needs nothing here."""
    names = measuring.sample(list(REGISTRY), 60, seed=3)
    ember_ml.set_backend("numpy")
    for name in names:
        operation = REGISTRY[name]
        with inputs.quietly():
            found = inputs.cases(operation)
        assert found, name
        keywords = {case.detail for case in found if case.about == inputs.KEYWORD}
        optional = {p.name for p in operation.parameters if p.keyword and p.role != "tensor"}
        assert optional <= keywords, name
        if operation.tensors and operation.tensors[0].role == "tensor":
            dtypes = [case.detail for case in found if case.about == inputs.DTYPES_OF]
            assert set(dtypes) in (set(), set(DTYPES)), name


def test_inputs_include_the_samples_of_the_contract() -> None:
    for name in ("sum", "einsum", "conv"):
        sampled = [(case.args, case.kwargs) for case in inputs.cases(REGISTRY[name]) if case.about == inputs.SAMPLE]
        assert len(sampled) == len(samples.calls(REGISTRY[name])) > 5
    assert not [case for case in inputs.cases(REGISTRY["memory_usage"]) if case.about == inputs.SAMPLE], (
        "its values vary"
    )


def test_inputs_cover_shapes_special_values_and_errors() -> None:
    ember_ml.set_backend("numpy")
    found = inputs.cases(REGISTRY["exp"])
    shapes = {case.args[0].shape for case in found if case.about == inputs.SHAPES}
    assert {(), (0,), (0, 3), (2, 2, 3)} <= shapes
    special = np.concatenate(
        [case.args[0].astype(np.float64).ravel() for case in found if case.about == inputs.SPECIAL]
    )
    assert np.isnan(special).any()
    assert np.isposinf(special).any()
    assert np.isneginf(special).any()
    assert any(isinstance(case.args[0], str) for case in found if case.about == inputs.NONSENSE)
    pairs = {
        tuple(str(a.dtype) for a in case.args) for case in inputs.cases(REGISTRY["add"]) if case.about == inputs.MIXED
    }
    assert ("int32", "float32") in pairs


def test_inputs_are_the_same_in_every_run() -> None:
    ember_ml.set_backend("numpy")
    first, second = inputs.cases(REGISTRY["matmul"]), inputs.cases(REGISTRY["matmul"])
    assert [case.text("f") for case in first if case.about != inputs.NONSENSE] == [
        case.text("f") for case in second if case.about != inputs.NONSENSE
    ]
    for a, b in zip(first, second, strict=True):
        if a.about == inputs.SHAPES:
            assert all(np.array_equal(x, y) for x, y in zip(a.args, b.args, strict=True))


def test_a_case_reads_like_a_call() -> None:
    case = Case("example", "", (np.zeros((2, 3), np.float32), [1, 2]), {"axis": 1, "f": abs})
    assert case.text("sum") == "sum(float32[2, 3], [1, 2], axis=1, f=<abs>)"
    special = Case("special", "nan first", (np.zeros(2, np.float32),))
    assert special.text("exp") == "exp(float32[2]), nan first"


@pytest.mark.parametrize(
    ("mine", "theirs", "what"),
    [
        (np.float32([1, 2]), np.float32([1, 2]), ""),
        (np.float32([1, np.nan]), np.float32([1, np.nan]), ""),
        (np.float32([1, 2]), np.float32([1, 2.00001]), ""),
        (np.float32([1, 2]), np.float32([1, 2.01]), "value"),
        (np.float32([0]), np.float32([np.nan]), "value"),
        (np.int64([1]), np.int64([2]), "value"),
        (np.float32([1]), np.float64([1]), "dtype"),
        (np.float32([1]), np.float32([[1]]), "shape"),
        (1, 1, ""),
        (1, True, "structure"),
        (float("nan"), float("nan"), ""),
        ("cpu", "gpu", "value"),
    ],
)
def test_what_differs(mine: Any, theirs: Any, what: str) -> None:
    assert difference(Outcome([("", mine)]), Outcome([("", theirs)])) == what


def test_errors_are_the_same_if_one_clause_catches_both() -> None:
    assert difference(Outcome(None, ("LinAlgError", "ValueError")), Outcome(None, ("ValueError",))) == ""
    assert difference(Outcome(None, ("TypeError",)), Outcome(None, ("ValueError",))) == "error"
    assert difference(Outcome([("", 1)]), Outcome(None, ("ValueError",))) == "error"


def test_the_worst_of_several_counts() -> None:
    assert together(["same", "differs", "same"]) == "differs"
    assert together(["differs", "crash", "hang"]) == "crash"
    assert together(["refused", "refused"]) == "refused"
    assert together(["refused", "same"]) == "same"
    assert together([]) == "unmeasured"
    assert set(STATUSES) >= set(EXPECTED.values())


def test_native_functions_are_compared() -> None:
    matrix = measuring.measure(["sum", "sqrt", "concat", "maximum", "zeros", "asarray"], engines=["numpy"], jobs=1)
    native = matrix["native"]["numpy"]
    assert native["numpy.sum"]["op"] == "sum"
    assert native["numpy.sum"]["keywords"]["axis"]
    assert native["numpy.maximum"]["dtypes"]["float32"]
    assert not native["numpy.maximum"]["mixed"], "int32 with float32 is float64 in NumPy"
    assert not native["numpy.sqrt"]["dtypes"]["int64"], "NumPy returns float64"
    assert not native["numpy.sqrt"]["python"], "NumPy makes float64 of Python's numbers"
    assert native["numpy.sum"]["parameters"] == ["x"], "an axis by position is NumPy's alone"
    assert native["numpy.zeros"]["keywords"]["dtype"], "with a dtype it is the same"
    assert not native["numpy.zeros"]["python"]
    assert not native["numpy.asarray"]["python"], "of floats in a list"
    assert not native["numpy.concat"]["python"], "of floats in lists"
    for found in native.values():
        if found["same"]:
            assert found["arrays"]
            assert found["mixed"]
            assert found["python"]
            assert found["errors"]


def test_an_interrupted_run_continues(tmp_path: Path) -> None:
    out, names = tmp_path / "matrix.json", ["add", "exp", "sum", "sort", "where", "inv"]
    partial = tmp_path / "matrix.json.partial"
    command = [sys.executable, "-m", "ember_ml", "ops", "measure", "--ops", *names, "--out", str(out), "--jobs", "1"]
    command += ["--backend", OTHER]
    # Whoever runs the tests in the background has them ignore the signal, and so their children.
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
    )
    deadline = time.monotonic() + 120
    while not (partial.exists() and partial.read_text().count("\n") >= 3):
        assert time.monotonic() < deadline
        assert process.poll() is None, "it ended before it could be interrupted"
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command continues" in said
    assert not out.exists()
    lines = partial.read_text().splitlines()
    # What is done is not done again: a report that no measurement could give stays.
    changed = json.loads(lines[1])
    changed["report"]["engines"]["numpy"]["cases"] = 12345
    partial.write_text("\n".join([lines[0], json.dumps(changed), *lines[2:], '{"op": "half']))
    assert cli.main(command[3:]) == 0
    matrix = measuring.read(out)
    assert list(matrix["operations"]) == names
    assert matrix["operations"][changed["op"]]["engines"]["numpy"]["cases"] == 12345
    assert not partial.exists()


def test_what_was_measured_of_another_version_is_void(tmp_path: Path) -> None:
    partial = tmp_path / "m.partial"
    partial.write_text('{"format": 1, "versions": {}, "source": "other"}\n{"op": "exp", "report": {}}\n')
    matrix = measuring.measure(["exp"], partial=partial, engines=["numpy"], jobs=1)
    assert matrix["operations"]["exp"]["engines"]["numpy"]["status"] == "same"


def test_the_file_is_what_was_measured(tmp_path: Path) -> None:
    matrix = measuring.read(LOCK)
    path = tmp_path / "m.json"
    measuring.write(matrix, path)
    assert measuring.read(path) == matrix
    assert path.read_text() == LOCK.read_text(), "the lock is a file that 'measure' wrote"


def test_the_lock_has_every_operation_and_engine() -> None:
    """Run: ember-ml ops measure --out ember_ml/tools/matrix.lock.json"""
    lock = measuring.read(LOCK)
    assert lock["format"] == FORMAT
    assert set(lock["operations"]) == set(REGISTRY)
    for name, operation in lock["operations"].items():
        for engine, entry in operation["engines"].items():
            assert entry["status"] in STATUSES, (name, engine)
            assert set(entry["dtypes"].values()) | set(entry["keywords"].values()) <= set(STATUSES), (name, engine)
            assert not (entry["status"] != "same" and entry["status"] != "unmeasured" and not entry["differences"]), (
                name
            )


def test_nothing_got_worse_than_the_lock(capsys: pytest.CaptureFixture[str]) -> None:
    """A sample; `ember-ml ops check ember_ml/tools/matrix.lock.json` takes them all."""
    status = cli.main(["ops", "check", str(LOCK), "--sample", "12", "--seed", "7", "--jobs", "1"])
    assert status == 0, capsys.readouterr().out


def lowered(matrix: dict[str, Any], name: str, status: str) -> dict[str, Any]:
    changed: dict[str, Any] = json.loads(json.dumps(matrix))
    entry = changed["operations"][name]["engines"]["numpy"]
    entry["status"] = entry["dtypes"]["float32"] = status
    return changed


def test_what_got_worse_is_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    matrix = measuring.measure(["exp", "sum"], engines=["numpy"], jobs=1)
    lock, now = tmp_path / "lock.json", tmp_path / "now.json"
    measuring.write(matrix, lock)
    measuring.write(lowered(matrix, "sum", "crash"), now)
    assert cli.main(["ops", "check", str(lock), "--matrix", str(now)]) == 1
    out = capsys.readouterr().out
    assert "sum on numpy: same became crash" in out
    assert "sum on numpy (dtype float32): same became crash" in out
    assert "exp" not in out
    assert cli.main(["ops", "check", str(now), "--matrix", str(lock)]) == 0, "better is no failure"
    assert cli.main(["ops", "check", str(lock), "--matrix", str(now), "--json"]) == 1
    capsys.readouterr()


def test_what_is_not_compared_does_not_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    few, one = tmp_path / "few.json", tmp_path / "one.json"
    measuring.write(measuring.measure(["exp", "sum"], engines=["numpy"], jobs=1), few)
    measuring.write(measuring.measure(["exp"], engines=["numpy"], jobs=1), one)
    for arguments, says in (
        ([str(few), "--ops", "add"], "few.json: the matrix must have the operation 'add'"),
        ([str(few), "--matrix", str(one), "--ops", "sum"], "one.json: the matrix must have the operation 'sum'"),
    ):
        assert cli.main(["ops", "check", *arguments]) == 2
        assert says in capsys.readouterr().err
    assert cli.main(["ops", "check", str(few), "--matrix", str(one)]) == 0
    assert capsys.readouterr().out == "1 operations checked, nothing got worse\n"
    lowered_sum = lowered(measuring.read(few), "sum", "crash")
    measuring.write(lowered_sum, one)
    assert cli.main(["ops", "check", str(few), "--matrix", str(one), "--ops", "exp"]) == 0
    assert cli.main(["ops", "check", str(few), "--matrix", str(one), "--ops", "sum"]) == 1


def test_an_operation_that_is_gone_is_worse(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    matrix = measuring.measure(["exp"], engines=["numpy"], jobs=1)
    matrix["operations"]["frobnicate"] = matrix["operations"]["exp"]
    measuring.write(matrix, tmp_path / "lock.json")
    assert cli.main(["ops", "check", str(tmp_path / "lock.json"), "--ops", "exp", "--backend", "numpy"]) == 1
    assert "frobnicate is gone" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "must be a matrix"),
        ("[]", "must be a matrix"),
        ('{"format": 9, "operations": {}}', "must have format 1, which this version reads, got 9"),
        ('{"format": 1, "operations": {}}', "must be a matrix"),
        ('{"format": 1, "versions": {}, "native": {}, "operations": {}}', "there must be something to compare"),
        ('{"format": 1, "versions": {}, "native": {}, "operations": {"add": 5}}', "something unreadable for 'add'"),
        (
            '{"format": 1, "versions": {}, "native": {}, "operations": {"add": {"engines": {"mlx": {}}}}}',
            "something unreadable for 'add'",
        ),
        (None, "must be a file, got none"),
    ],
)
def test_a_bad_file_is_one_line(
    text: str | None, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "m.json"
    if text is not None:
        path.write_text(text)
    assert cli.main(["ops", "check", str(path)]) == 2
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1


def test_unknown_operations_are_named() -> None:
    with pytest.raises(UsageError, match="an operation must be one that is known, got 'frobnicate'"):
        measuring.measure(["frobnicate"])


@pytest.fixture(autouse=True)
def _numpy() -> Iterator[None]:
    yield
    ember_ml.set_backend("numpy")


def test_a_default_that_was_measured_is_not_that_of_what_follows() -> None:
    names = ["set_default_dtype", "relu", "zeros"]
    matrix = measuring.measure(names, jobs=1)
    statuses = {entry["status"] for name in names for entry in matrix["operations"][name]["engines"].values()}
    assert statuses == {"same"}
    # torch has its own default.
    assert all(native["torch.zeros"]["arrays"] for engine, native in matrix["native"].items() if engine == "torch")


def test_drawn_values_are_multiples_of_an_eighth_over_the_whole_range() -> None:
    """Every float dtype holds them, and a result that holds for a few of them only is noticed."""
    for kind in (np.float32, np.complex64):
        found = np.asarray(inputs.drawn(np.array([-2.0, 3.0], kind), (80, 25), seed=1))
        assert found.dtype == kind
        assert found.shape == (80, 25)
        assert set(np.unique(found.real)) == {number / 8 for number in range(-16, 25)}
    assert len(np.unique(found.imag)) > 10
    integers = np.asarray(inputs.drawn(np.array([-1, 2]), (40,), seed=1))
    assert set(integers.tolist()) == {-1, 0, 1, 2}
    assert set(np.asarray(inputs.drawn(np.array([True]), (40,), seed=1)).tolist()) == {True, False}
    assert np.asarray(inputs.drawn(np.array([1.0]), (0, 3), seed=1)).shape == (0, 3)


def test_both_runs_of_a_case_have_the_same_defaults() -> None:
    work = workers.Work(REGISTRY["zeros"], "zeros", {}, lambda line: None)

    def zeros() -> Any:
        made = ember_ml.ops.zeros(2)
        ember_ml.ops.set_default_dtype("float64")
        return made

    with ember_ml.use_backend("numpy"):
        before = ember_ml.ops.get_default_dtype()
        try:
            first, second = work._run_twice(backends.load("numpy"), zeros, Case("", "", ()))
            assert not difference(first, second, 0.0)
            assert ember_ml.ops.get_default_dtype() == before
        finally:
            ember_ml.ops.set_default_dtype(before)
