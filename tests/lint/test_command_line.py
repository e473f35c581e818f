"""The command line: exit status, formats, baseline, cache, changed lines, processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from schemas import published_schema

import emberlint
from emberlint import config as configuration
from emberlint import rules
from emberlint.cli import main
from emberlint.codes import rule_modules
from emberlint.config import Config
from emberlint.lint import cache, listing, runner

BAD = 'import numpy as np\n\n\ndef f(x):\n    return np.exp(x), "é", np.pi\n'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Current folder with one good and one bad file."""
    configuration.load.cache_clear()
    (tmp_path / "bad.py").write_text(BAD, encoding="utf-8")
    (tmp_path / "good.py").write_text("x = 1\n", encoding="utf-8")
    settings = '[tool.emberlint]\nselect = ["EMB0", "EMB1"]\nmatrix = "matrix.json"\n'
    (tmp_path / "pyproject.toml").write_text(settings, encoding="utf-8")
    nothing_measured = '{"format": 1, "versions": {}, "operations": {}, "native": {}}'
    (tmp_path / "matrix.json").write_text(nothing_measured, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_status(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["good.py"]) == 0
    assert capsys.readouterr().out == "no findings in 1 file.\n"
    assert main(["."]) == 1
    assert "3 findings in 1 file" in capsys.readouterr().out
    assert main(["absent.py"]) == 2
    assert "no such file or folder: absent.py" in capsys.readouterr().err
    assert main(["--no-such-option"]) == 2
    assert main(["--select", "EMB9", "."]) == 2
    assert main(["--unsafe-fixes", "."]) == 2
    assert main(["--help"]) == 0


def test_an_internal_error_is_status_two(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr(runner, "run", broken)
    assert main(["."]) == 2
    assert "internal error: RuntimeError: planted" in capsys.readouterr().err


def test_purity_rules_only(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "force.py").write_text(
        "import torch\n\n\ndef f(x: torch.Tensor):\n    return float(x)\n", encoding="utf-8"
    )
    assert main(["--frontend-backend-only", "--output-format", "json", "force.py"]) == 1
    assert {row["code"] for row in json.loads(capsys.readouterr().out)} == {"EMB101", "EMB105"}


def test_concise(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["--output-format", "concise", "bad.py"])
    lines = capsys.readouterr().out.splitlines()
    advice = "use `ember_ml.ops`, or allow it in `layers` of [tool.emberlint]"
    assert lines[0] == f"bad.py:1:8: EMB101 `numpy` is imported outside of a backend; {advice}"
    assert lines[2].startswith("bad.py:5:28: EMB103 [*] `np.pi` belongs to numpy; use `ops.pi`")


def test_json(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["--output-format", "json", "bad.py"])
    rows = json.loads(capsys.readouterr().out)
    last = rows[-1]
    assert (last["code"], last["name"], last["filename"]) == ("EMB103", "backend-constant", "bad.py")
    assert last["location"] == {"row": 5, "column": 28}
    assert last["fix"]["applicability"] == "safe"
    assert last["fix"]["edits"][-1] == {
        "content": "ops.pi",
        "location": {"row": 5, "column": 28},
        "end_location": {"row": 5, "column": 33},
    }


def test_github(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["--output-format", "github", "bad.py"])
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith(
        "::error title=emberlint (EMB101),file=bad.py,line=1,col=8,endLine=1,endColumn=19::EMB101 `numpy`"
    )


def test_gitlab(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["--output-format", "gitlab", "bad.py"])
    rows = json.loads(capsys.readouterr().out)
    assert len({row["fingerprint"] for row in rows}) == len(rows) == 3
    assert rows[0]["location"]["path"] == "bad.py"
    assert rows[0]["location"]["positions"]["begin"] == {"line": 1, "column": 8}
    assert {row["severity"] for row in rows} == {"major"}


def test_junit(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "odd.py").write_bytes(b"import numpy as np\nx = np.exp('\x07<&>')\n")
    main(["--output-format", "junit", "bad.py", "odd.py"])
    root = ElementTree.fromstring(capsys.readouterr().out)
    assert root.attrib["failures"] == "5"
    assert [suite.attrib["name"] for suite in root] == ["bad.py", "odd.py"]
    main(["--output-format", "junit", "good.py"])
    assert ElementTree.fromstring(capsys.readouterr().out).attrib["failures"] == "0"


def test_sarif_conforms_to_its_schema(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import jsonschema

    schema = published_schema(
        "https://raw.githubusercontent.com/oasis-tcs/sarif-spec/master/Schemata/sarif-schema-2.1.0.json"
    )
    for paths in (["bad.py"], ["good.py"], [str(project)]):
        main(["--output-format", "sarif", *paths])
        log = json.loads(capsys.readouterr().out)
        jsonschema.validate(log, schema, cls=jsonschema.Draft7Validator)
    results = log["runs"][0]["results"]
    listed = [rule["id"] for rule in log["runs"][0]["tool"]["driver"]["rules"]]
    assert all(listed[result["ruleIndex"]] == result["ruleId"] for result in results)
    for broken in ({"version": "2.0.0", "runs": []}, {"version": "2.1.0", "runs": [{"results": []}]}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(broken, schema, cls=jsonschema.Draft7Validator)


def test_statistics(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--statistics", "."]) == 1
    text = capsys.readouterr().out
    assert text.startswith("     1  EMB101      an import of an engine")
    assert "     1  EMB103 [*]  a dtype or a constant" in text
    main(["--statistics", "--output-format", "json", "."])
    assert [row["count"] for row in json.loads(capsys.readouterr().out)] == [1, 1, 1]


def test_fix_and_diff(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--diff", "bad.py"]) == 1
    printed = capsys.readouterr()
    assert '-    return np.exp(x), "é", np.pi\n+    return np.exp(x), "é", ops.pi\n' in printed.out
    assert printed.err == "1 file would change.\n"
    assert (project / "bad.py").read_text(encoding="utf-8") == BAD
    assert main(["--fix", "bad.py"]) == 1
    assert "1 fixed" in capsys.readouterr().out
    assert main(["--fix", "--unsafe-fixes", "bad.py"]) == 0
    text = (project / "bad.py").read_text(encoding="utf-8")
    assert text == 'from ember_ml import ops\n\n\ndef f(x):\n    return ops.exp(x), "é", ops.pi\n'
    assert main(["--diff", "--unsafe-fixes", "bad.py"]) == 0


def test_baseline(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["baseline", "stats"]) == 2
    assert "write one with `emberlint baseline update`" in capsys.readouterr().err
    assert main(["baseline", "update"]) == 0
    assert main(["baseline", "stats"]) == 0
    assert capsys.readouterr().out.endswith("3 findings in 1 file.\n")
    known = ["--baseline", "emberlint-baseline.json"]
    assert main([*known, "."]) == 0
    moved = "# a new first line\n\n" + BAD
    (project / "bad.py").write_text(moved, encoding="utf-8")
    assert main([*known, "."]) == 0, "lines may move"
    (project / "bad.py").write_text(moved + "y = np.exp(1)\n", encoding="utf-8")
    assert main([*known, "."]) == 1, "a new finding is reported"
    (project / "bad.py").write_text("x = 1\n", encoding="utf-8")
    capsys.readouterr()
    assert main([*known, "--output-format", "concise", "."]) == 1, "a stale entry is reported"
    assert capsys.readouterr().out.count("EMB004 stale baseline entry") == 3
    assert main([*known, "good.py"]) == 0, "a file that was not linted is not judged"
    assert main([*known, "--select", "EMB004,EMB2", "."]) == 0, "a rule that did not run is not judged"
    (project / "bad.py").unlink()
    assert main([*known, "good.py"]) == 1, "a file that is gone is"
    assert main(["baseline", "prune"]) == 0
    assert "3 stale entries removed, 0 left." in capsys.readouterr().out
    assert main([*known, "."]) == 0


def test_fixing_prunes_the_baseline(project: Path) -> None:
    main(["baseline", "update"])
    (project / "bad.py").write_text("x = 1\n", encoding="utf-8")
    known = ["--baseline", "emberlint-baseline.json"]
    assert main([*known, "--fix", "."]) == 0
    assert json.loads((project / "emberlint-baseline.json").read_text(encoding="utf-8"))["findings"] == {}


def test_a_broken_baseline_is_status_two(project: Path) -> None:
    (project / "b.json").write_text("[]", encoding="utf-8")
    assert main(["--baseline", "b.json", "."]) == 2


def test_cache(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = configuration.load(".")
    first = runner.run(["."], config)
    second = runner.run(["."], config)
    assert (first.cached, second.cached) == (0, 2)
    assert second.findings == first.findings
    folder = project / cache.FOLDER
    assert (folder / ".gitignore").read_text(encoding="utf-8") == "*\n"
    (project / "good.py").write_text("import torch\n", encoding="utf-8")
    third = runner.run(["."], config)
    assert third.cached == 1
    assert {finding.path for finding in third.findings} == {"bad.py", "good.py"}
    assert runner.run(["."], config._replace(ignore=("EMB101",))).cached == 0, "settings are a part of the key"
    monkeypatch.setattr(cache, "_linter", lambda: "another linter")
    assert runner.run(["."], config).cached == 0
    for text in ("not json", "[]", '{"bad.py": [1], "good.py": null}'):
        for name in folder.glob("*.json"):
            name.write_text(text, encoding="utf-8")
        assert runner.run(["."], config).findings == third.findings


def test_the_cache_keeps_the_newest_files_of_other_settings(project: Path) -> None:
    runner.run(["."], configuration.load("."))
    folder = project / cache.FOLDER
    (own,) = folder.glob("*.json")
    os.utime(own, (1.0e9, 1.0e9))
    for number in range(10):
        path = folder / f"other{number}.json"
        path.write_text("{}", encoding="utf-8")
        os.utime(path, (1.1e9 + number, 1.1e9 + number))
    (project / "good.py").write_text("import torch\n", encoding="utf-8")
    runner.run(["."], configuration.load("."))
    assert {path.name for path in folder.glob("*.json")} == {
        own.name,
        *(f"other{number}.json" for number in range(2, 10)),
    }


def test_every_file_of_the_linter_is_part_of_the_cache_key() -> None:
    folder = Path(emberlint.__file__).parent
    files = {str(path) for path in folder.rglob("*") if path.suffix in (".py", ".json")}
    assert {line.rsplit(":", 2)[0] for line in cache._stamps(str(folder))} == files


def test_the_cache_compares_size_and_time_and_then_content(project: Path) -> None:
    config = configuration.load(".")
    path = project / "good.py"
    for text, time, found in (
        ("import torch \n", 1.0e9, 1),
        ("import pprint\n", 1.1e9, 0),
        ("import pprint\n", 1.2e9, 0),
    ):
        path.write_text(text, encoding="utf-8")
        os.utime(path, (time, time))
        run = runner.run(["good.py"], config)
        assert len(run.findings) == found
    assert run.cached == 1, "another time, the same content"
    path.write_text("import torch \n", encoding="utf-8")
    os.utime(path, (1.1e9, 1.1e9))
    known = runner.run(["good.py"], config)
    assert (known.cached, known.findings) == (1, []), "the size and the time of the second"


def test_processes_find_the_same(project: Path) -> None:
    for i in range(120):
        (project / f"m{i}.py").write_text(BAD, encoding="utf-8")
    config = configuration.load(".")
    alone = runner.run(["."], config, jobs=1, cached=False)
    together = runner.run(["."], config, jobs=2, cached=False)
    assert alone.findings == together.findings
    assert len(alone.findings) == 121 * 3


def git(*arguments: str) -> None:
    identity = {
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@b",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@b",
    }
    subprocess.run(["git", *arguments], check=True, capture_output=True, env={**os.environ, **identity})


def test_changed_lines(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "first")
    assert main(["--diff-base", "HEAD", "."]) == 0
    (project / "bad.py").write_text(BAD + "y = np.pi\n", encoding="utf-8")
    (project / "new.py").write_text("import torch\n", encoding="utf-8")
    capsys.readouterr()
    assert main(["--diff-base", "HEAD", "--output-format", "concise", "."]) == 1
    assert [line.partition(" ")[0] for line in capsys.readouterr().out.splitlines()[:-1]] == [
        "bad.py:6:5:",
        "new.py:1:8:",
    ]
    assert main(["--diff-base", "no-such-revision", "."]) == 2


def test_files(project: Path) -> None:
    for name in (".hidden/a.py", "__pycache__/a.py", "venv/a.py", "deep/er/a.py", "deep/skipped/a.py", "a.txt"):
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("import torch\n", encoding="utf-8")
    found = list(listing.files(["."], Config(root=str(project), exclude=("deep/skipped",)), []))
    assert found == ["bad.py", "deep/er/a.py", "good.py"]
    assert list(listing.files(["a.txt"], Config(), [])) == ["a.txt"]


def test_excluded_files_on_the_command_line(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "pyproject.toml").write_text('[tool.emberlint]\nexclude = ["bad.py"]\n', encoding="utf-8")
    before = (project / "bad.py").read_bytes()
    assert main(["bad.py", "good.py"]) == 1
    capsys.readouterr()
    assert main(["--force-exclude", "bad.py", "good.py"]) == 0
    assert capsys.readouterr().out == "no findings in 1 file.\n"
    assert main(["--force-exclude", "--fix", "--unsafe-fixes", "bad.py"]) == 0
    assert (project / "bad.py").read_bytes() == before


def test_explain(capsys: pytest.CaptureFixture[str]) -> None:
    for code in rule_modules():
        assert main(["explain", code]) == 0
        assert capsys.readouterr().out.startswith(f"# {code} {rules.load(code).name}\n")
    assert main(["explain", "backend-import"]) == 0
    assert main(["explain", "EMB999"]) == 2


def test_rules(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line[:6] for line in lines] == list(rule_modules())
    assert main(["rules", "--json"]) == 0
    assert {row["code"] for row in json.loads(capsys.readouterr().out)} == set(rule_modules())


def test_why(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "w.py").write_text("import torch\nx = torch.zeros(3)\nif x.sum() > 0:\n    pass\n", encoding="utf-8")
    assert main(["why", "w.py:3"]) == 0
    text = capsys.readouterr().out
    assert "`x.sum() > 0`: torch tensor of bool\n" in text
    assert "line 2: `torch.zeros(3)` is the result of this call: torch tensor" in text
    assert main(["why", "good.py:1"]) == 0
    assert "no types are inferred" in capsys.readouterr().out
    assert main(["why", "good.py"]) == 2
    assert main(["why", "absent.py:1"]) == 2


def test_it_runs_without_numpy_and_starts_fast(project: Path) -> None:
    code = (
        "import sys; from emberlint.cli import main; status = main(['--no-cache', 'bad.py']);"
        "print([name for name in ('numpy', 'torch', 'ember_ml', 'rich') if name in sys.modules], status)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[] 1"


@pytest.mark.parametrize(
    "arguments",
    [
        ["bad.py", "--output-format", "concise", "good.py"],
        ["--output-format", "concise", "bad.py", "good.py"],
        ["--output-format", "concise", "--", "bad.py", "good.py"],
    ],
)
def test_paths_may_come_before_and_after_options(arguments: list[str], project: Path) -> None:
    assert main(arguments) == 1


def test_check_is_the_default_command(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (
        ["."],
        ["bad.py", "--statistics"],
        [],
        ["--select", "EMB9"],
        ["--output-format", "json", "bad.py"],
    ):
        plain = main(arguments), capsys.readouterr()
        assert (main(["check", *arguments]), capsys.readouterr()) == plain
    assert main(["check", "--help"]) == 0
    assert "emberlint [check] PATH... [options]" in capsys.readouterr().out
    (project / "check").mkdir()
    (project / "check" / "m.py").write_text(BAD, encoding="utf-8")
    assert main(["./check"]) == 1
    assert capsys.readouterr().out.endswith("3 findings in 1 file; 1 fixable with --fix; 1 more with --unsafe-fixes.\n")


def test_a_baseline_may_come_before_its_paths(project: Path) -> None:
    assert main(["baseline", "update", "--baseline", "known.json", "bad.py", "good.py"]) == 0
    assert main(["--baseline", "known.json", "."]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--select", "", "."], "argument --select: must name at least one, got ''"),
        (["--targets", ",", "."], "argument --targets: must name at least one, got ','"),
        (["--jobs=-1", "."], "argument --jobs: must be an integer >= 0, got '-1'"),
        (["--fix", "--diff-base", "HEAD", "."], "--diff-base cannot be combined with --fix or --diff"),
        (
            ["--statistics", "--output-format", "sarif", "."],
            "--statistics requires --output-format full, concise or json, got sarif",
        ),
        (["expalin", "EMB203"], "no such file or folder: expalin; did you mean `explain`?"),
        (["explain", "truth-valu"], "CODE must be a rule, got truth-valu; did you mean `truth-value`?"),
        (["explain", "EMB999"], "CODE must be a rule, got EMB999; run `emberlint rules` for a list"),
        (["why", "bad.py:99"], "line must be between 1 and 5 in bad.py, got 99"),
        (["why", "bad.py:0"], "line must be between 1 and 5 in bad.py, got 0"),
        (["why", "bad.py"], "must be FILE:LINE, such as model.py:12, got bad.py"),
        (["why", "folder:1"], "emberlint: folder: Is a directory"),
        (["why", "absent.py:1"], "emberlint: absent.py: No such file or directory"),
        (["port", "--from", "numpy", "absent"], "no such file or folder: absent"),
        (["baseline", "update", "--baseline", "folder"], "folder: cannot be written: Is a directory"),
        (["baseline", "update", "--baseline", "no/known.json"], "no/known.json: cannot be written: No such file"),
    ],
)
def test_usage_errors(arguments: list[str], message: str, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "folder").mkdir()
    assert main(arguments) == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert "internal error" not in printed


def test_why_accepts_a_column(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", "bad.py:5"]) == 0
    printed = capsys.readouterr().out
    assert main(["why", "bad.py:5:12"]) == 0
    assert capsys.readouterr().out == printed


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("[tool]\nemberlint = 3\n", "[tool.emberlint] must be a table, got 3"),
        ('[tool.emberlint]\nnamespace = ""\n', "`namespace` must be a dotted module name, got ''"),
        (
            '[tool.emberlint]\nnamespace = "my-package.ops"\n',
            "`namespace` must be a dotted module name, got 'my-package.ops'",
        ),
    ],
)
def test_invalid_settings(settings: str, message: str, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "pyproject.toml").write_text(settings, encoding="utf-8")
    assert main(["."]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("pattern", ["sub/made", "./sub/made", "sub/made/", r"sub\made", r".\sub\made"])
def test_spellings_of_a_pattern(pattern: str) -> None:
    assert configuration.matches("sub/made/a.py", pattern)
    assert not configuration.matches("sub/makes/a.py", pattern)


@pytest.mark.parametrize("command", ["bad.py", "rules", "explain EMB203", "--help", "--version", "why bad.py:5"])
def test_a_closed_pipe(command: str, project: Path) -> None:
    program = [sys.executable, "-m", "emberlint", *command.split()]
    # Without this, short output is written only when the program exits.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    reader, writer = os.pipe()
    os.close(reader)
    gone = subprocess.run(program, stdout=writer, stderr=subprocess.PIPE, env=environment, check=False)
    os.close(writer)
    assert (gone.returncode, gone.stderr) == (141, b"")
    closed = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *program], capture_output=True, env=environment, check=False
    )
    assert closed.returncode == (command == "bad.py")
    assert closed.stderr == b""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
def test_a_full_disk_is_status_two(project: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with open("/dev/full", "wb") as full:
        program = [sys.executable, "-m", "emberlint", "bad.py"]
        done = subprocess.run(program, stdout=full, stderr=subprocess.PIPE, env=environment, check=False)
    assert (done.returncode, done.stderr) == (2, b"emberlint: [Errno 28] No space left on device\n")


STYLES = ("full", "concise", "json", "github", "gitlab", "sarif", "junit")


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_output_in_any_encoding(style: str, encoding: str, project: Path) -> None:
    folder = project / "größe→"
    folder.mkdir()
    (folder / "a.py").write_text('import numpy as np\nx = np.pi, "∑"\n', encoding="utf-8")
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    program = [sys.executable, "-m", "emberlint", "--output-format", style, folder.name]
    done = subprocess.run(program, capture_output=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (1, b"")
    if style == "junit":
        suite = ElementTree.fromstring(done.stdout)[0]
        assert suite.get("name") == os.path.join("größe→", "a.py")


@pytest.mark.parametrize("style", STYLES)
def test_a_path_that_does_not_decode(style: str, project: Path) -> None:
    name = os.fsdecode(b"odd\xff.py")
    try:
        (project / name).write_text(BAD, encoding="utf-8")
    except OSError:
        pytest.skip("this file system has names that are text alone")
    program = [sys.executable, "-m", "emberlint", "--output-format", style, name]
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(program, capture_output=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (1, b"")
    if style == "junit":
        ElementTree.fromstring(done.stdout)


def test_changed_lines_with_unusual_names_and_texts(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def git(*arguments: str) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
        subprocess.run(["git", *who, *arguments], cwd=project, check=True, capture_output=True)

    names = ["bad.py", "größe.py", 'quo"te.py', "sp ace.py", "ta\tb.py"]
    for name in names:
        (project / name).write_text("x = 1\n", encoding="utf-8")
    (project / "notes.txt").write_bytes(b"caf\xe9\n")
    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "--message", "first")
    for name in names:
        # A diff shows the second line like the header of a file.
        (project / name).write_text('import numpy as np\nx = """\n++ b/other.py\n"""\n', encoding="utf-8")
    (project / "notes.txt").write_bytes(b"caf\xe9s\n")
    capsys.readouterr()
    assert main(["--diff-base", "HEAD", "--output-format", "json", "."]) == 1
    found = json.loads(capsys.readouterr().out)
    assert {os.path.basename(row["filename"]) for row in found} == set(names)
    assert main(["--diff-base", "no-such-revision", "."]) == 2
    assert "emberlint: git diff: fatal" in capsys.readouterr().err
