"""The tool that plants bugs: what it plants and where it never does, which tests it relates to a file, its verdicts."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path, PurePosixPath

import bugs
import mutants
import pytest
from bugs import Bug, bugs_in, is_one
from related import Related, Step

ROOT = Path(__file__).parent.parent
KNOWN = tomllib.loads((ROOT / "tests" / "mutants.toml").read_text(encoding="utf-8"))

PLANTED = {
    "operator": [
        ("x = a + b", "x = a - b"),
        ("x = a // (b)  # a // b", "x = a / (b) # a // b"),
        ("x = a and b and c", "x = a and b or c"),
        ("x += a", "x -= a"),
    ],
    "boundary": [("x = a < b", "x = a <= b"), ("x = 0 <= a < b", "x = 0 < a < b")],
    "comparison": [("x = a is  not b", "x = a is b"), ("x = a in b", "x = a not in b")],
    "condition": [
        ("if a: f = b", "if True: f = b"),
        ("if a: f = b", "if False: f = b"),
        ("x = [a for a in b if a > c]", "x = [a for a in b if True]"),
        ("x = (a or b) and c", "x = (False or b) and c"),
        ("x = not a", "x = a"),
    ],
    "constant": [
        ("x = a[1]", "x = a[2]"),
        ("x = a[1]", "x = a[0]"),
        ("x = 0.5", "x = 1.0"),
        ("x = f(True)", "x = f(False)"),
    ],
    "default": [("def f(a=1): pass", "def f(a=2): pass"), ("def f(*, a=-1): pass", "def f(*, a=-2): pass")],
    "axis": [("x = f(a, axis=-1)", "x = f(a, axis=0)"), ("x = f(a, axis=0)", "x = f(a, axis=1)")],
    "dtype": [("x = f('float32')", 'x = f("float64")'), ("x = np.int64", "x = np.int32")],
    "sign": [("x = -a", "x = a"), ("x = a[-1]", "x = a[1]")],
    "argument": [
        ("x = f(a, dtype=b, device=c)", "x = f(a, dtype=b)"),
        ("x = f(dtype=b, device=c)", "x = f(device=c)"),
        ("x = f(dtype=b)", "x = f()"),
    ],
    "error": [
        ("raise ValueError(a)", "raise TypeError(a)"),
        ("try: f = a\nexcept (KeyError, IndexError): f = b", "except (ZeroDivisionError, IndexError): f = b"),
    ],
    "statement": [("f(a)", "pass"), ("self.a = b", "pass"), ("raise ValueError(a)", "pass"), ("a[0] = b", "pass")],
}


def test_every_kind_has_examples() -> None:
    assert tuple(PLANTED) == bugs.KINDS


@pytest.mark.parametrize(
    ("kind", "before", "after"), [(kind, *pair) for kind, pairs in PLANTED.items() for pair in pairs], ids=str
)
def test_what_is_planted(kind: str, before: str, after: str) -> None:
    source = before.encode()
    found = {bug.lines(source)[1] for bug in bugs_in("x.py", source) if bug.kind == kind and is_one(bug, source)}
    assert after in found


def test_nothing_is_planted_where_it_would_be_no_bug() -> None:
    source = textwrap.dedent('''
        """A module of 3 lines."""
        from typing import TYPE_CHECKING, TypeAlias, TypeVar, cast

        __all__ = ["f"] + ["g"]
        T = TypeVar("T", bound=int)
        Number: TypeAlias = int | float

        if TYPE_CHECKING:
            x = 1

        def f(a: "Literal[1]") -> "Literal[-1]":
            """Return 1 + 1."""
            assert a > 0
            text = f"{a + 1}"
            warnings.warn(f"{a + 1}", stacklevel=2)
            return zip(cast("list[int | None]", a), strict=True)

        def _named(a):
            return str(a + 1) if a > 0 else _other(a)

        def _other(a):
            return a - 1

        class C:
            def __repr__(self):
                return str(self.x + 1)

        if __name__ == "__main__":
            f(1)
    ''')
    source += "\ndef g(a):\n    text = _named(a)\n    raise ValueError(text)\n"
    found = [bug.lines(source.encode()) for bug in bugs_in("x.py", source.encode())]
    told = 'warnings.warn(f"{a + 1}", stacklevel=2)'
    allowed = {(told, "pass"), ("raise ValueError(text)", "pass"), ("raise ValueError(text)", "raise TypeError(text)")}
    assert {pair for pair in found if pair not in allowed} == {('text = f"{a + 1}"', text) for text in _changed()}


def _changed() -> list[str]:
    """The text of a variable that is no message can have bugs."""
    return ['text = f"{a - 1}"', 'text = f"{a + 2}"', 'text = f"{a + 0}"']


def test_bytes_that_are_not_ascii_do_not_move_a_place() -> None:
    source = 'x = "äö🔥"; y = a + b'.encode()
    assert {bug.planted(source).decode() for bug in bugs_in("x.py", source)} == {'x = "äö🔥"; y = a - b'}


def test_a_place_knows_what_it_is_in() -> None:
    source = b"class C:\n    def f(self, a=1):\n        return a + self.b\nTABLE = {'sin': lambda a: -a}\n"
    assert {(bug.function, bug.unit) for bug in bugs_in("x.py", source)} == {("C.f", "C"), ("<module>", "sin")}


@pytest.fixture(scope="module")
def project() -> mutants.Project:
    return mutants.Project(ROOT)


def test_a_sample_is_the_same_for_a_seed_and_compiles(project: mutants.Project) -> None:
    def drawn(seed: int) -> list[Bug]:
        return project.sample(40, seed, ["ember_ml/optim/*", "emberlint/rules/*"], ["*/adam.py"])

    sample = drawn(5)
    assert len(set(sample)) == 40
    assert sample == drawn(5)
    assert sample != drawn(6)
    assert all(is_one(bug, project.sources[bug.path]) for bug in sample)
    assert {Path(bug.path).parent.name for bug in sample} == {"optim", "rules"}
    assert not any(bug.path.endswith("adam.py") for bug in sample)


def test_a_sample_is_spread_over_files_by_what_is_in_them(project: mutants.Project) -> None:
    """Every file has its share, as far as a drawn sample has."""
    paths = ["ember_ml/training/*"]
    sample = project.sample(60, 1, paths, [])
    sizes = {
        path: len(bugs_in(path, source)) for path, source in project.sources.items() if mutants._matches(path, paths)
    }
    for path, size in sizes.items():
        share = 60 * size / sum(sizes.values())
        assert abs(sum(bug.path == path for bug in sample) - share) < 3 * share**0.5 + 1


def place(path: str, unit: str = bugs.MODULE) -> Bug:
    return Bug(path, "sign", 0, 0, "", 1, unit, unit)


def test_every_file_has_related_tests(project: mutants.Project) -> None:
    for path in project.sources:
        assert path.endswith("__main__.py") or project.related.steps(place(path)), path


def test_every_row_of_the_table_names_files_that_are_there(project: mutants.Project) -> None:
    for row in KNOWN["related"]:
        for pattern in row["files"]:
            assert any(PurePosixPath(path).match(pattern) for path in project.sources), pattern
        for test in row["tests"]:
            file = test.partition(" -k ")[0]
            assert any(PurePosixPath(path).match(file) for path in project.related.tests), file


def test_what_is_related_to_operations(project: mutants.Project) -> None:
    def steps(path: str, unit: str) -> list[str]:
        return [str(step) for step in project.related.steps(place(path, unit))]

    contract = 'tests/test_contract.py -k "'
    assert steps("ember_ml/ops/math.py", "lerp")[0] == contract + 'math.lerp] or math.lerp-"'
    assert "tests/test_math.py" in steps("ember_ml/ops/math.py", "lerp")
    assert steps("ember_ml/backend/mlx/math.py", "copysign")[0].startswith(contract + "mlx and (math.copysign] or ")
    assert steps("ember_ml/backend/numpy/math.py", "sign")[0].startswith(contract + "math.sign] or ")


def test_helpers_are_related_to_the_operations_that_use_them(tmp_path: Path) -> None:
    write(tmp_path, "ember_ml/ops/math.py", "@op(free)\ndef sin(x): ...\n\n@op(free)\ndef cos(x): ...\n")
    write(
        tmp_path,
        "ember_ml/backend/torch/math.py",
        "def _b(x): ...\ndef _a(x): return _b(x)\ndef cos(x): return _a(x)\n",
    )
    write(tmp_path, "ember_ml/gradients/math.py", "RULES = {'sin': [lambda g: -g]}\n")
    write(tmp_path, "tests/test_contract.py", "")
    related = Related(tmp_path, [])
    assert related.steps(place("ember_ml/backend/torch/math.py", "_b")) == [
        Step("tests/test_contract.py", "torch and (math.cos] or math.cos-)")
    ]
    assert related.steps(place("ember_ml/gradients/math.py", "sin")) == [
        Step("tests/test_contract.py", "math.sin] or math.sin-")
    ]


def test_what_is_related_by_name_import_and_class(tmp_path: Path) -> None:
    write(tmp_path, "tests/layers.py", "CASES = [Linear]\n")
    write(tmp_path, "tests/test_layers.py", "import layers\n")
    write(tmp_path, "tests/test_nn.py", "")
    write(tmp_path, "tests/test_other.py", "from ember_ml.nn import linear\n")
    write(tmp_path, "tests/test_far.py", "from ember_ml.nn import linearity\n")
    write(tmp_path, "tests/test_listed.py", "")
    found = Related(tmp_path, [{"files": ["nn/*.py"], "tests": ["tests/test_listed.py -k a or b"]}])
    assert set(found.steps(place("ember_ml/nn/linear.py", "Linear"))) == {
        Step(f"tests/test_{name}.py", selected) for name in ("layers", "nn", "other") for selected in ("", "Linear")
    } | {Step("tests/test_listed.py", "a or b")}


def test_rules_of_the_linter_have_their_fixtures_first(project: mutants.Project) -> None:
    assert project.related.steps(place("emberlint/rules/emb304_division.py"))[0] == Step(
        "tests/lint/test_rules.py", "EMB304"
    )


def verdict(log: mutants.Log, steps: list[Step], limit: float, ends: dict[tuple[str, bool], mutants.Outcome]) -> str:
    """What is said of a bug whose steps end like this, by file and whether the bug is planted."""
    bug = place("ember_ml/thing.py")
    examination = mutants.examine(bug, list(steps), log, limit)
    try:
        request = next(examination)
        while True:
            request = examination.send(ends[request.step.file, request.bug is not None])
    except StopIteration as end:
        return end.value.result


def outcome(status: str, seconds: float = 1.0) -> mutants.Outcome:
    return mutants.Outcome(status, seconds)


A, B = Step("tests/test_a.py"), Step("tests/test_b.py")
VERDICTS = {
    "killed": {("A", False): outcome("passed"), ("A", True): outcome("failed")},
    "survived": {("A", False): outcome("passed"), ("A", True): outcome("passed")},
    "untested": {("A", False): outcome("failed")},
    "timeout": {("A", False): outcome("passed"), ("A", True): outcome("timeout", 15.0)},
    "undecided": {("A", False): outcome("passed", 12.0), ("A", True): outcome("timeout", 40.0)},
}


@pytest.fixture
def log(tmp_path: Path) -> mutants.Log:
    small_tree(tmp_path)
    return mutants.Log(tmp_path / "log.jsonl", mutants.Project(tmp_path))


def test_tests_that_fail_without_the_bug_are_left_out(log: mutants.Log) -> None:
    failing = ("tests/test_a.py::test_broken",)
    examination = mutants.examine(place("ember_ml/thing.py"), [A], log, 40.0)
    assert next(examination).bug is None
    request = examination.send(mutants.Outcome("failed", 1.0, "test_broken", failing))
    assert request.bug is not None
    assert request.deselected == failing
    with pytest.raises(StopIteration) as end:
        examination.send(outcome("failed"))
    assert end.value.value.result == "killed"


@pytest.mark.parametrize("expected", VERDICTS)
def test_verdicts(expected: str, log: mutants.Log) -> None:
    ends = {(A.file, planted): end for (_, planted), end in VERDICTS[expected].items()}
    assert verdict(log, [A], 40.0, ends) == expected


def test_a_step_that_fails_without_the_bug_kills_nothing(log: mutants.Log) -> None:
    ends = {(A.file, False): outcome("failed"), (A.file, True): outcome("failed")}
    ends |= {(B.file, False): outcome("passed"), (B.file, True): outcome("passed")}
    assert verdict(log, [A, B], 40.0, ends) == "survived"


def test_the_quickest_step_is_first_and_runs_without_a_bug_only_once(log: mutants.Log) -> None:
    log.add_clean(A, outcome("passed", 9.0))
    log.add_clean(B, outcome("passed", 2.0))
    assert verdict(log, [A, B], 40.0, {(B.file, True): outcome("failed")}) == "killed"


def write(root: Path, name: str, text: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text, encoding="utf-8")


def small_tree(root: Path) -> None:
    """A project with a function that is tested, one that is tested in a separate process, and one that is not."""
    subprocess.run(["git", "init", "--quiet", root], check=True)
    write(root, "ember_ml/__init__.py", "")
    write(root, "ember_ml/thing.py", "def twice(n):\n    return n * 2\n\n\ndef third(n):\n    return n // 3\n")
    write(root, "ember_ml/other.py", "def more(n):\n    return -n\n")
    code = "from ember_ml.thing import third; assert third(7) == 2"
    write(
        root,
        "tests/test_thing.py",
        "import subprocess, sys\nfrom ember_ml.thing import twice\n"
        "def test_twice():\n    assert twice(3) == 6\n"
        f"def test_third():\n    assert subprocess.run([sys.executable, '-c', {code!r}]).returncode == 0\n",
    )
    write(root, "tests/test_other.py", "import ember_ml.other\ndef test_imports():\n    pass\n")
    write(root, "tests/test_a.py", "")
    write(root, "tests/test_b.py", "")
    write(root, "tests/mutants.toml", "")
    write(root, "pyproject.toml", "")


def test_a_run(tmp_path: Path) -> None:
    """From the sample to the exit status, in a process that has no threads yet."""
    root = tmp_path / "tree"
    small_tree(root)
    before = {
        path: path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file() and ".git" not in path.parts
    }

    def start(*arguments: str) -> subprocess.CompletedProcess[str]:
        code = "import sys, pathlib, mutants; mutants.PRELOADED = ('pytest',); "
        code += "sys.exit(mutants.main(sys.argv[2:], pathlib.Path(sys.argv[1])))"
        return subprocess.run(
            [sys.executable, "-c", code, str(root), "--jobs", "2", "--resume", str(tmp_path / "log.jsonl"), *arguments],
            env={**os.environ, "PYTHONPATH": str(ROOT / "tests"), "TMPDIR": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=120,
        )

    done = start()
    assert done.returncode == 1, done.stderr
    # Seven bugs: * and 2 in twice, // and 3 in third, - in more, which no test calls.
    assert "ember_ml/other.py:1" not in done.stdout
    assert "survived: number" in done.stdout
    assert "-    return -n\n+    return n\n" in done.stdout
    assert "85.7 % killed" in done.stdout
    assert "tests/test_thing.py::test_third" in done.stdout
    assert before == {path: path.read_bytes() for path in before}
    assert sorted(path for path in root.rglob("*") if path.is_file() and ".git" not in path.parts) == list(before)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.jsonl", "tree"]

    again = start("--floor", "80")
    assert again.returncode == 0, again.stderr
    assert "85.7 % killed" in again.stdout
    assert "killed in" not in again.stdout

    entry = {
        "file": "ember_ml/other.py",
        "function": "more",
        "before": "return -n",
        "after": "return n",
        "reason": "none",
    }
    write(
        root, "tests/mutants.toml", "[[equivalent]]\n" + "".join(f"{key} = {text!r}\n" for key, text in entry.items())
    )
    assert start().returncode == 0
    write(root, "ember_ml/other.py", "def more(n):\n    return n\n")
    assert "in tests/mutants.toml, and nowhere in the source any more:\n  ember_ml/other.py: more" in start().stdout


def test_equivalent_bugs_have_a_reason() -> None:
    for entry in KNOWN.get("equivalent", []):
        assert set(entry) == {"file", "function", "before", "after", "reason"}
        assert len(entry["reason"].split()) > 3, entry


def test_the_modules_of_the_tool_parse_without_the_library() -> None:
    """A forked process imports the library with the bug in it, so the process that forks may not import it before."""
    for name in ("mutants", "bugs", "related"):
        tree = ast.parse((ROOT / "tests" / f"{name}.py").read_bytes())
        imported = {a.name for node in ast.walk(tree) if isinstance(node, ast.Import) for a in node.names}
        imported |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) if node.module}
        assert not any(module.partition(".")[0] in mutants.PACKAGES for module in imported)
