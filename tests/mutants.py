"""Plant bugs in the library, one at a time, and see whether the related tests fail: ``make mutants``.

A sample of the bugs that ``bugs.py`` finds is drawn from every file in proportion to their number. For each,
``related.py`` names the steps to run: a test file, whole or with ``-k``. A step is first run without the bug, once for
all bugs; tests that fail even so are left out and reported. The quickest step goes first, and the first failure ends
it.

===========  =======================================================================================================
killed       a test failed
timeout      a step took more than five times as long as without the bug, plus ten seconds; counts as killed
undecided    a step met the limit of ``--timeout``, and is not much faster without the bug
survived     every step passed: a test is missing, or the bug is none
untested     there is no related test that passes without the bug
equivalent   listed in ``tests/mutants.toml`` as a bug that changes nothing, with the reason; it is not run
===========  =======================================================================================================

The working tree is never written to. Each job has its own copy of the tree, in which the one file is changed; test
processes have that copy first on their path, and so have the processes that they start. They are forked from this
process, which has imported the engines and pytest, but nothing of the library: a step takes its own time, and not the
seconds that imports take. (No engine is used before the fork. Importing torch and MLX starts no threads.)
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import gc
import hashlib
import importlib
import itertools
import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter, deque
from collections.abc import Generator, Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

from bugs import KINDS, Bug, bugs_in, is_one
from related import Related, Step

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("ember_ml", "emberlint")
RESULTS = ("killed", "timeout", "survived", "undecided", "untested", "equivalent")
FLOOR = 92.0

# Imported before the first fork, where they are installed: what tests and the library import, and is slow.
PRELOADED = (
    "pytest",
    "hypothesis.extra.numpy",
    "numpy.testing",
    "autograd.numpy",
    "ml_dtypes",
    "mlx.core",
    "mlx.nn",
    "mlx.optimizers",
    "numba",
    "opt_einsum",
    "rich.console",
    "rich.table",
    "rich.progress",
    "safetensors.numpy",
    "scipy.special",
    "scipy.stats",
    "sklearn.decomposition",
    "sklearn.metrics",
    "sklearn.preprocessing",
    "torch",
    "torch._dynamo",
    "torch.testing",
)


class Project:
    """A tree to plant bugs in: its files, the relation to its tests, and the bugs that are known to change nothing."""

    def __init__(self, root: Path) -> None:
        self.root = root
        known = tomllib.loads((root / "tests" / "mutants.toml").read_text(encoding="utf-8"))
        self.related = Related(root, known.get("related", []))
        self.equivalents = {
            (entry["file"], entry["function"], entry["before"], entry["after"]): entry["reason"]
            for entry in known.get("equivalent", [])
        }
        self.sources = {
            str(path.relative_to(root)): path.read_bytes()
            for package in PACKAGES
            for path in sorted((root / package).rglob("*.py"))
            if "samples" not in path.parts  # other inputs are no bugs
        }

    def sample(self, count: int, seed: int, paths: Iterable[str], excluded: Iterable[str]) -> list[Bug]:
        """``count`` bugs, or all there are: each file has its share, and in it rare kinds have more than theirs.

        Each bug draws its own rank: a change to one file leaves the bugs of all others in the sample.
        """
        ranked: list[tuple[float, Bug]] = []
        for path, source in self.sources.items():
            if (not paths or _matches(path, paths)) and not _matches(path, excluded):
                ranked += self._ranked(bugs_in(path, source), seed)
        ranked.sort(key=lambda pair: pair[0], reverse=True)
        found = (bug for _, bug in ranked if is_one(bug, self.sources[bug.path]))
        return list(itertools.islice(found, count))

    def _ranked(self, found: list[Bug], seed: int) -> Iterator[tuple[float, Bug]]:
        """The bugs of one file with their ranks: a kind weighs the root of how many there are."""
        kinds = Counter(bug.kind for bug in found)
        whole = sum(number**0.5 for number in kinds.values())
        for bug in found:
            weight = len(found) / whole * kinds[bug.kind] ** -0.5
            name = (seed, bug.function, bug.kind, *bug.lines(self.sources[bug.path]))
            yield math.log(random.Random(repr(name)).random()) / weight, bug

    def reason(self, bug: Bug) -> str | None:
        """Why a bug is none, where it is known to be none."""
        return self.equivalents.get((bug.path, bug.function, *bug.lines(self.sources[bug.path])))

    def stale(self) -> list[str]:
        """What is listed as a bug that changes nothing, and can be planted no more."""
        missing = []
        for path, function, before, after in self.equivalents:
            source = self.sources.get(path, b"")
            keys = ((bug.function, *bug.lines(source)) for bug in bugs_in(path, source))
            if (function, before, after) not in keys:
                missing.append(f"{path}: {function}: {before}")
        return missing

    def diff(self, bug: Bug) -> str:
        """What the bug changes, as a hunk of a unified diff."""
        source = self.sources[bug.path]
        old, new = (text.decode().splitlines(keepends=True) for text in (source, bug.planted(source)))
        return "".join(difflib.unified_diff(old, new, f"a/{bug.path}", f"b/{bug.path}", n=2))

    def digest(self, path: str) -> str:
        """What identifies the content of a source file."""
        return hashlib.sha1(self.sources[path]).hexdigest()[:12]


def _matches(path: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch(path, pattern) for pattern in patterns)


def files_of(root: Path) -> list[str]:
    """The files of the tree that git tracks, or would."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, capture_output=True, check=True).stdout.decode().split("\0")
    return [name for name in listed if name and (root / name).is_file()]


def digest_of(root: Path) -> str:
    """What identifies the content of a whole tree."""
    known = hashlib.sha1()
    for name in files_of(root):
        known.update(name.encode() + hashlib.sha1((root / name).read_bytes()).digest())
    return known.hexdigest()[:12]


class Outcome(NamedTuple):
    """How a step ended."""

    status: str
    """``passed``, ``failed``, ``timeout``, or ``empty`` if no test was selected."""
    seconds: float
    by: str = ""
    """The test that failed first, and its error."""
    failing: tuple[str, ...] = ()
    """The ids of the tests that failed without a bug."""


class Request(NamedTuple):
    """A step to run, with a bug or without, for so many seconds at most."""

    step: Step
    bug: Bug | None
    limit: float
    deselected: tuple[str, ...] = ()
    """The ids of tests to leave out."""


class Verdict(NamedTuple):
    """What became of a bug."""

    result: str
    by: str = ""


class Job:
    """A copy of the tree, and the test process that runs in it."""

    def __init__(self, project: Project, folder: Path) -> None:
        self.root, self.sources, self.folder = project.root, project.sources, folder / "tree"
        self.report = folder / "report.json"
        self.scratch = folder / "scratch"
        for name in files_of(self.root):
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(self.root / name, self.folder / name)
        self.bug: Bug | None = None
        self.written = 0
        self.pid = 0

    def start(self, request: Request) -> None:
        """Fork a process that runs the step."""
        self._plant(request.bug)
        self.report.unlink(missing_ok=True)
        self.limit, self.began = request.limit, time.monotonic()
        self.pid = os.fork()
        if not self.pid:
            self._run_tests(request)

    def outcome(self) -> Outcome | None:
        """How the step ended, or ``None`` while it runs."""
        seconds = time.monotonic() - self.began
        ended, status = os.waitpid(self.pid, os.WNOHANG)
        if not ended and seconds < self.limit:
            return None
        self.stop()
        if not ended:
            return Outcome("timeout", seconds)
        report = {"by": "the process ended early", "failing": []}
        if self.report.exists():
            report = json.loads(self.report.read_text())
        code = os.waitstatus_to_exitcode(status)
        return Outcome({0: "passed", 5: "empty"}.get(code, "failed"), seconds, report["by"], tuple(report["failing"]))

    def stop(self) -> None:
        """End the process and those that it started."""
        if self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, 0)
            self.pid = 0

    def _plant(self, bug: Bug | None) -> None:
        if self.bug == bug:
            return
        if self.bug is not None:
            self._write(self.bug.path, self.sources[self.bug.path])
        if bug is not None:
            self._write(bug.path, bug.planted(self.sources[bug.path]))
        self.bug = bug

    def _write(self, name: str, source: bytes) -> None:
        """Write a file of the copy, from what was read at the start: the tree may be worked on meanwhile."""
        (self.folder / name).write_bytes(source)
        # Python compares seconds and size to tell whether its compiled file is current; both may be the same.
        self.written += 1
        os.utime(self.folder / name, (self.written, self.written))

    def _run_tests(self, request: Request) -> None:
        """In the forked process: run pytest, write what failed, and end."""
        code = 3
        try:
            os.setsid()
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            # A shell starts background jobs with SIGINT ignored, and some tests send it.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            nothing = os.open(os.devnull, os.O_RDWR)
            for stream in range(3):
                os.dup2(nothing, stream)
            os.chdir(self.folder)
            ours = {"", str(self.root), str(self.root / "tests")}
            sys.path[:] = [str(self.folder), *(place for place in sys.path if place not in ours)]
            os.environ["PYTHONPATH"] = str(self.folder)
            # Tests may have modules of these names.
            for name in ("bugs", "related"):
                sys.modules.pop(name, None)
            watcher = Watcher()
            code = int(sys.modules["pytest"].main(self._arguments(request), plugins=[watcher]))
            report = {"by": watcher.by or ("an import" if code else ""), "failing": watcher.failing}
            self.report.write_text(json.dumps(report))
        finally:
            os._exit(code)

    def _arguments(self, request: Request) -> list[str]:
        step = request.step
        first = ["-x"] if request.bug else []
        options = [*first, "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:terminal", "--assert=plain"]
        settings = ["-c", str(self.folder / "pyproject.toml"), "-o", "addopts=--strict-markers --strict-config"]
        places = ["--rootdir", str(self.folder), "--basetemp", str(self.scratch)]
        selected = ["-k", step.selected] if step.selected else []
        deselected = [word for test in request.deselected for word in ("--deselect", test)]
        return [step.file, *selected, *deselected, *options, *settings, *places]


class Watcher:
    """A plugin of pytest that keeps the first failure, and the ids of all tests that failed."""

    def __init__(self) -> None:
        self.by = ""
        self.failing: list[str] = []

    def pytest_runtest_logreport(self, report: Any) -> None:
        self._keep(report)
        if report.failed and report.nodeid not in self.failing:
            self.failing.append(report.nodeid)

    def pytest_collectreport(self, report: Any) -> None:
        self._keep(report)

    def _keep(self, report: Any) -> None:
        if report.failed and not self.by:
            crash = getattr(report.longrepr, "reprcrash", None)
            words = str(getattr(crash, "message", "")).split("\n")[0][:160]
            self.by = f"{report.nodeid}: {words}" if words else report.nodeid


class Log:
    """The results so far: one line of JSON for each bug, and for each step without a bug."""

    def __init__(self, path: Path, project: Project) -> None:
        self.path, self.project = path, project
        self.tree = digest_of(project.root)
        self.verdicts: dict[str, Verdict] = {}
        self.clean: dict[Step, Outcome] = {}
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                self._read(line)

    def _read(self, line: str) -> None:
        try:
            entry = json.loads(line)
        except json.JSONDecodeError:
            return  # The line that was being written when the run ended.
        if "bug" in entry:
            self.verdicts[entry["bug"]] = Verdict(entry["result"], entry["by"])
        elif entry["tree"] == self.tree:
            status, seconds, by, failing = entry["outcome"]
            self.clean[Step(*entry["step"])] = Outcome(status, seconds, by, tuple(failing))

    def key(self, bug: Bug) -> str:
        """What identifies a bug as long as its file is the same."""
        return f"{bug.path}@{self.project.digest(bug.path)}:{bug.start}-{bug.end}:{bug.text}"

    def add_verdict(self, bug: Bug, verdict: Verdict, seconds: float) -> None:
        self.verdicts[self.key(bug)] = verdict
        where = {"place": f"{bug.path}:{bug.line}", "kind": bug.kind, "seconds": round(seconds, 2)}
        self._write({"bug": self.key(bug), **verdict._asdict(), **where})

    def add_clean(self, step: Step, outcome: Outcome) -> None:
        self.clean[step] = outcome
        self._write({"step": step, "tree": self.tree, "outcome": outcome})

    def _write(self, entry: dict[str, Any]) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")


def examine(bug: Bug, steps: list[Step], log: Log, limit: float) -> Generator[Request, Outcome, Verdict]:
    """What becomes of a bug, from the outcomes of the steps that are asked for."""
    passed = undecided = False
    while steps:
        step = min(steps, key=lambda step: _expected(step, log))
        steps.remove(step)
        if step not in log.clean:
            log.add_clean(step, (yield Request(step, None, 2 * limit)))
        clean = log.clean[step]
        if clean.status != "passed" and not clean.failing:
            undecided |= clean.status == "timeout"
            continue
        allowed = min(limit, 5 * clean.seconds + 10)
        outcome = yield Request(step, bug, allowed, clean.failing)
        if outcome.status == "empty":
            continue
        if outcome.status == "failed":
            return Verdict("killed", outcome.by)
        if outcome.status == "timeout" and clean.seconds < allowed / 4:
            return Verdict("timeout", str(step))
        undecided |= outcome.status == "timeout"
        passed = True
    return Verdict("undecided" if undecided else "survived" if passed else "untested")


def _expected(step: Step, log: Log) -> float:
    """How long a step takes without a bug, or a guess from the length of the file."""
    if step in log.clean:
        return log.clean[step].seconds
    lines = log.project.related.tests[step.file].count("\n")
    return lines / (200 if step.selected else 50)


def run(project: Project, sample: list[Bug], log: Log, jobs: int, limit: float) -> Iterator[tuple[Bug, Verdict, float]]:
    """Examine bugs, several at a time; yields each with what became of it and how long that took."""
    waiting = deque(sample)
    folder = Path(tempfile.mkdtemp(prefix="mutants-"))
    busy: dict[Job, tuple[Bug, Generator[Request, Outcome, Verdict], float]] = {}
    everyone: list[Job] = []
    try:
        everyone = [Job(project, folder / str(number)) for number in range(jobs)]
        while waiting or busy:
            for job in everyone:
                if job not in busy and waiting:
                    bug = waiting.popleft()
                    busy[job] = bug, examine(bug, project.related.steps(bug), log, limit), time.monotonic()
                    outcome = None
                elif job not in busy or (outcome := job.outcome()) is None:
                    continue
                bug, examination, began = busy[job]
                try:
                    job.start(examination.send(outcome) if outcome else next(examination))
                except StopIteration as end:
                    del busy[job]
                    yield bug, end.value, time.monotonic() - began
            time.sleep(0.02)
    finally:
        for job in everyone:
            job.stop()
        shutil.rmtree(folder, ignore_errors=True)


def preload() -> None:
    """Import what the forked processes would import each for itself."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    for name in PRELOADED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.collect()
    gc.freeze()


def package_of(path: str) -> str:
    """The part of the project that a file is counted under."""
    return "/".join(Path(path).parts[:-1][:2])


def table(sample: list[Bug], verdicts: list[Verdict]) -> str:
    """The number of bugs of each result, for each kind and each package."""
    lines = []
    for title, label in (("kind", lambda bug: bug.kind), ("package", lambda bug: package_of(bug.path))):
        rows: dict[str, Counter[str]] = {}
        for bug, verdict in zip(sample, verdicts, strict=True):
            rows.setdefault(label(bug), Counter())[verdict.result] += 1
        order = [kind for kind in KINDS if kind in rows] if title == "kind" else sorted(rows)
        rows["total"] = sum(rows.values(), Counter())
        lines += ["", f"{title:<20}" + "".join(f"{name:>11}" for name in RESULTS) + f"{'killed':>9}"]
        for name in (*order, "total"):
            counts = "".join(f"{rows[name][result] or '':>11}" for result in RESULTS)
            lines.append(f"{name:<20}{counts}{_percent(rows[name]):>9}")
    return "\n".join(lines)


def kill_rate(counts: Counter[str]) -> float:
    """The share of the bugs with a clear result that tests noticed, in percent."""
    noticed = counts["killed"] + counts["timeout"]
    clear = noticed + counts["survived"] + counts["untested"]
    return 100.0 * noticed / clear if clear else 100.0


def _percent(counts: Counter[str]) -> str:
    return f"{kill_rate(counts):.1f} %"


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        description="Plant bugs in ember_ml and emberlint, one at a time; report those that no related test notices.",
        epilog="For example: python tests/mutants.py --count 40 --paths 'ember_ml/optim/*' 'ember_ml/training/*'. "
        "The working tree is never written to. Ctrl-C ends a run; --resume continues it.",
    )
    made.add_argument("--count", type=int, default=300, help="how many bugs to draw (300)")
    made.add_argument("--seed", type=int, default=16, help="which bugs: the same for one tree and seed (16)")
    made.add_argument("--jobs", type=int, default=2, help="how many to examine at a time (2)")
    made.add_argument("--paths", nargs="+", default=[], metavar="GLOB", help="draw from these source files only")
    made.add_argument("--exclude", nargs="+", default=[], metavar="GLOB", help="do not draw from these source files")
    made.add_argument("--list", action="store_true", help="print the bugs that are drawn, and run nothing")
    made.add_argument("--show", type=int, metavar="N", help="print bug N of the list with its tests, and run nothing")
    made.add_argument("--only", type=int, nargs="+", metavar="N", help="run these bugs of the list once more")
    made.add_argument("--resume", type=Path, metavar="FILE", help="read results from this log, and add the rest")
    made.add_argument("--again", action="store_true", help="with --resume: run again what was not killed")
    made.add_argument("--timeout", type=float, default=120.0, help="seconds that a step may take with a bug (120)")
    made.add_argument("--floor", type=float, default=FLOOR, help=f"exit with 1 if fewer percent are killed ({FLOOR:g})")
    return made


def show(project: Project, bug: Bug) -> str:
    """A bug as a diff, and the steps that are related to it."""
    steps = "\n".join(f"  {step}" for step in project.related.steps(bug)) or "  none"
    return f"{bug.path}:{bug.line}: {bug.kind}, in {bug.function}\n{project.diff(bug)}related tests:\n{steps}"


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Run the command line for the tree at ``root``; returns the exit status."""
    options = parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    project = Project(root)
    sample = project.sample(options.count, options.seed, options.paths, options.exclude)
    if options.list:
        for number, bug in enumerate(sample, 1):
            before, after = bug.lines(project.sources[bug.path])
            print(f"{number:4} {bug.kind:<10} {bug.path}:{bug.line}\n       - {before}\n       + {after}")
        return 0
    if options.show is not None:
        print(show(project, sample[options.show - 1]))
        return 0
    log = Log(options.resume or Path(tempfile.mkstemp(prefix="mutants-", suffix=".jsonl")[1]), project)
    print(f"{len(sample)} bugs; log: {log.path}", flush=True)
    chosen = [sample[number - 1] for number in options.only] if options.only else sample
    for bug in chosen:
        known = log.verdicts.get(log.key(bug))
        if options.only or (options.again and known and known.result not in ("killed", "timeout")):
            log.verdicts.pop(log.key(bug), None)
        if (reason := project.reason(bug)) is not None:
            log.verdicts[log.key(bug)] = Verdict("equivalent", reason)
    try:
        _report_progress(project, chosen, log, options)
    except KeyboardInterrupt:
        print(f"\ninterrupted; continue with --resume {log.path}")
        return 130
    return _report(project, chosen, log, options.floor)


def _report_progress(project: Project, chosen: list[Bug], log: Log, options: argparse.Namespace) -> None:
    left = [bug for bug in chosen if log.key(bug) not in log.verdicts]
    if left:
        preload()
    began = time.monotonic()
    for done, (bug, verdict, seconds) in enumerate(run(project, left, log, options.jobs, options.timeout), 1):
        log.add_verdict(bug, verdict, seconds)
        remaining = (time.monotonic() - began) / done * (len(left) - done)
        rate = _percent(Counter(log.verdicts[log.key(bug)].result for bug in chosen if log.key(bug) in log.verdicts))
        number = f"[{len(chosen) - len(left) + done}/{len(chosen)}]"
        place = f"{bug.path}:{bug.line} {bug.kind}{f' by {verdict.by}' if verdict.by else ''}"
        figures = f"{rate} killed, {_minutes(remaining)} left"
        print(f"{number} {verdict.result} in {seconds:.1f} s: {place} | {figures}", flush=True)


def _report(project: Project, chosen: list[Bug], log: Log, floor: float) -> int:
    verdicts = [log.verdicts[log.key(bug)] for bug in chosen]
    for number, (bug, verdict) in enumerate(zip(chosen, verdicts, strict=True), 1):
        if verdict.result in ("survived", "untested", "undecided"):
            print(f"\n{verdict.result}: number {number}, {show(project, bug)}")
    print(table(chosen, verdicts))
    failing = [f"{step}: {end.by}" for step, end in log.clean.items() if end.status in ("failed", "timeout")]
    _print_list("left out, because they fail without any bug", failing)
    _print_list("in tests/mutants.toml, and nowhere in the source any more", project.stale())
    rate = kill_rate(Counter(verdict.result for verdict in verdicts))
    print(f"\n{rate:.1f} % killed; the floor is {floor:g} %")
    return int(rate < floor or bool(failing))


def _print_list(title: str, lines: list[str]) -> None:
    if lines:
        print(f"\n{title}:", *(f"  {line}" for line in lines), sep="\n")


if __name__ == "__main__":
    sys.exit(main())
