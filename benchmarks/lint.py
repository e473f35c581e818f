"""The speed of emberlint, compared with ruff, flake8 and ``ast.parse`` on the same files in the same run.

    python benchmarks/lint.py                              # 1,000 files of an installed package
    python benchmarks/lint.py --tree SRC --files 300       # another tree, or part of it
    python benchmarks/lint.py --python /usr/bin/python3    # emberlint and ast.parse with another Python

The files are copied to a separate folder, so that their configuration and cache are not used. The programs take turns;
a figure is the median over the turns. Seconds are wall-clock time; rates are per second of CPU time. Thousands of
findings are written, one per line. Programs that are not installed are skipped with a message.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from measuring import positive, setting

# Packages with about a thousand files or more; the first that is installed is read. The targets are for Keras, which
# the extra ``bench`` brings: files of torch are twice as long.
PACKAGES = ("keras", "torch", "jax", "sklearn")

# Program that parses the files whose names it reads, one per line.
PARSE = """
import ast, sys, warnings
warnings.simplefilter("ignore")
for name in sys.stdin.read().splitlines():
    try:
        with open(name, "rb") as file:
            ast.parse(file.read())
    except (SyntaxError, ValueError):
        continue
"""


class Contender(NamedTuple):
    """Program to measure: an untimed step before each turn, the turn, the number of files, and the target."""

    name: str
    prepare: Callable[[], object]
    turn: Callable[[], object]
    files: int
    seconds: float | None = None
    rate: float | None = None


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tree", type=Path, help="the folder to read (default: an installed package)")
    parser.add_argument(
        "--files", type=positive, default=1000, metavar="N", help="how many of its files (default: 1000)"
    )
    parser.add_argument("--repeats", type=positive, default=5, metavar="N", help="turns of each program (default: 5)")
    parser.add_argument(
        "--python", default=sys.executable, metavar="PROGRAM", help="the Python that runs emberlint (default: this one)"
    )
    parser.add_argument("--json", metavar="FILE", help="also write the figures as JSON; - is standard output")
    parser.add_argument(
        "--flake8", default=shutil.which("flake8"), metavar="PROGRAM", help="flake8, if it is elsewhere"
    )
    options = parser.parse_args(arguments)
    if shutil.which(options.python) is None:
        parser.error(f"there is no program {options.python}")
    tree = options.tree or _package()
    with tempfile.TemporaryDirectory(prefix="lint-") as folder:
        files = _copy(tree, options.files, Path(folder) / "tree")
        size = sum(file.stat().st_size for file in files)
        contenders, missing = _contenders(Path(folder), files, options.python, options.flake8)
        found = _measure(contenders, options.repeats)
    if options.tree is None and tree.name != PACKAGES[0]:
        missing[PACKAGES[0]] = f"not installed, which the targets are for; {tree.name} was read instead"
    version = subprocess.run([options.python, "--version"], capture_output=True, text=True, check=True)
    report = {
        "setting": setting("ruff", "flake8"),
        "python": f"{version.stdout.strip()} ({options.python})",
        "tree": tree.name,
        "files": len(files),
        "bytes": size,
        "rows": [_row(contender, found[contender.name]) for contender in contenders],
        "skipped": missing,
    }
    _print_report(report, sys.stderr if options.json == "-" else sys.stdout)
    if options.json:
        text = json.dumps(report, indent=2)
        print(text) if options.json == "-" else Path(options.json).write_text(text + "\n")
    return 0


def _package() -> Path:
    """Folder of the first of the packages that is installed."""
    for name in PACKAGES:
        spec = find_spec(name)
        if spec is not None and spec.submodule_search_locations:
            return Path(spec.submodule_search_locations[0])
    raise SystemExit(f"none of {', '.join(PACKAGES)} is installed: name a folder with --tree")


def _copy(tree: Path, count: int, target: Path) -> list[Path]:
    """Copies of the first files of the tree, in the order of their names."""
    sources = sorted(file for file in tree.rglob("*.py") if "__pycache__" not in file.parts)[:count]
    if not sources:
        raise SystemExit(f"{tree}: no Python files")
    copies = []
    for source in sources:
        copy = target / source.relative_to(tree)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, copy)
        copies.append(copy)
    return copies


def _contenders(
    folder: Path, files: list[Path], python: str, flake8: str | None
) -> tuple[list[Contender], dict[str, str]]:
    tree, cache, one = folder / "tree", folder / ".emberlint_cache", _typical(files)
    (folder / "pyproject.toml").write_text("[tool.emberlint]\n")
    lint = [python, "-m", "emberlint", "--output-format", "concise"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    names = "\n".join(map(str, files)).encode()

    def without_cache() -> None:
        shutil.rmtree(cache, ignore_errors=True)

    def run(*command: str | Path, given: bytes = b"") -> Callable[[], object]:
        def turn() -> None:
            done = subprocess.run(
                command, cwd=folder, env=environment, input=given, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
            )
            if done.returncode not in (0, 1):
                raise SystemExit(f"{' '.join(map(str, command))}: {done.stderr.decode()}")

        return turn

    def nothing() -> None: ...

    cold = run(*lint, "--jobs", "1", tree)
    number = len(files)
    contenders = [
        Contender("ast.parse, in one process", nothing, run(python, "-c", PARSE, given=names), number),
        Contender("emberlint cold, one process", without_cache, cold, number, rate=300),
        Contender("emberlint cold, all processes", without_cache, run(*lint, tree), number),
        Contender("emberlint warm", run(*lint, tree), run(*lint, tree), number, seconds=0.3),
        Contender("emberlint, one file", without_cache, run(*lint, one), 1, seconds=0.15),
        Contender("python -c pass", nothing, run(python, "-c", "pass"), 1),
    ]
    missing = {}
    ruff = shutil.which("ruff", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
    check = ("check", "--isolated", "--no-cache", "--output-format", "concise")
    if ruff is None:
        missing["ruff"] = "not installed"
    else:
        contenders.append(Contender("ruff cold", nothing, run(ruff, *check, tree), number))
        contenders.append(Contender("ruff, one file", nothing, run(ruff, *check, one), 1))
    if flake8 is None:
        missing["flake8"] = "not installed"
    else:
        contenders.append(
            Contender("flake8, one process", nothing, run(flake8, "--isolated", "--jobs", "1", tree), number)
        )
        contenders.append(Contender("flake8, one file", nothing, run(flake8, "--isolated", one), 1))
    return contenders, missing


def _typical(files: list[Path]) -> Path:
    """The file of median size."""
    return sorted(files, key=lambda file: file.stat().st_size)[len(files) // 2]


def _measure(contenders: list[Contender], repeats: int) -> dict[str, list[tuple[float, float]]]:
    found: dict[str, list[tuple[float, float]]] = {contender.name: [] for contender in contenders}
    for _ in range(repeats):
        for contender in contenders:
            contender.prepare()
            start, work = time.perf_counter(), _work()
            contender.turn()
            found[contender.name].append((time.perf_counter() - start, _work() - work))
    return found


def _work() -> float:
    """CPU time of this process and its children, in seconds."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _row(contender: Contender, turns: list[tuple[float, float]]) -> dict[str, object]:
    times = [seconds for seconds, _ in turns]
    middle, work = statistics.median(times), statistics.median(work for _, work in turns)
    row: dict[str, object] = {"name": contender.name, "seconds": middle, "fastest": min(times), "slowest": max(times)}
    row["processor seconds"] = work
    if contender.files > 1:
        row["files per second and core"] = contender.files / work
    if contender.seconds is not None:
        row["target"] = f"under {contender.seconds} s"
        row["met"] = middle < contender.seconds
    if contender.rate is not None:
        row["target"] = f"at least {contender.rate:.0f} files per second and core"
        row["met"] = contender.files / work >= contender.rate
    return row


def _print_report(report: dict[str, object], stream: object) -> None:
    def say(text: str) -> None:
        print(text, file=stream)  # type: ignore[call-overload]

    where: dict[str, object] = report["setting"]  # type: ignore[assignment]
    say(f"{where['machine']}, {report['python']}, load {where['load']}")
    each = report["bytes"] / report["files"] / 1000  # type: ignore[operator]
    say(f"{report['files']} files of {report['tree']}, {each:.1f} kB each")
    say("Wall-clock time (fastest to slowest), CPU time, rate per core:")
    say("")
    for row in report["rows"]:  # type: ignore[attr-defined]
        rate = row.get("files per second and core")
        work = f"{row['processor seconds']:7.3f} s" + (f" {rate:6.0f} files/s" if rate else " " * 15)
        target = f"   {row['target']}: {'met' if row['met'] else 'MISSED'}" if "target" in row else ""
        say(f"{row['name']:32} {row['seconds']:7.3f} s ({row['fastest']:.3f} to {row['slowest']:.3f}) {work}{target}")
    for name, reason in report["skipped"].items():  # type: ignore[attr-defined]
        say(f"Skipped: {name}: {reason}")


if __name__ == "__main__":
    sys.exit(main())
