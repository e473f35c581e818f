"""The measured matrix: every operation on every engine, compared with the reference.

Worker processes run the operations. This module monitors them, so that crashes and hangs are recorded as results.
Results are appended to ``<out>.partial``, from which an interrupted run continues.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import queue
import random
import select
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from difflib import get_close_matches
from importlib import metadata
from pathlib import Path
from typing import Any

import ember_ml
from ember_ml import backend as backends
from ember_ml.errors import EmberError
from ember_ml.tools import FORMAT, REFERENCE, STATUSES, UsageError
from emberlint import atomic

Matrix = dict[str, Any]

LIMIT = 10.0

_START_LIMIT = 300.0
_MOST_VERDICTS = 3


def measure(
    names: Sequence[str] | None = None,
    *,
    engines: Sequence[str] | None = None,
    modules: Sequence[str] = (),
    jobs: int | None = None,
    limit: float = LIMIT,
    partial: Path | None = None,
    progress: Callable[[int, int, str], None] = lambda done, total, name: None,
) -> Matrix:
    """Measured matrix of the named operations, or of all.

    Args:
        names: names of operations.
        engines: engines to measure in addition to the reference; by default all that are installed.
        modules: dotted names of additional modules whose operations are measured.
        jobs: number of worker processes; by default the number of processors.
        limit: time limit of a call in seconds, after which it counts as hanging.
        partial: file of intermediate results, from which a later call continues.
        progress: called with the number of finished operations, their total, and the name of the last.
    """
    from ember_ml.tools.workers import known_operations

    known = known_operations(list(modules))
    check_names(names or (), known)
    requested = list(dict.fromkeys(names or known))
    used = list(dict.fromkeys([REFERENCE, *(engines or ember_ml.get_available_backends())]))
    for name in used:
        backends.load(name, "ember-ml ops measure")
    kept = _Partial(partial, used, modules)
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
    todo = [name for name in requested if name not in kept.reports]
    for name in todo:
        waiting.put(name)
    done = len(requested) - len(todo)
    progress(done, len(requested), "")
    finished: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
    stop = threading.Event()
    count = max(1, min(jobs or os.cpu_count() or 1, len(todo)))
    watchers = [
        threading.Thread(target=_watch, args=(waiting, finished, used, modules, limit, stop)) for _ in range(count)
    ]
    try:
        for watcher in watchers if todo else ():
            watcher.start()
        for _ in todo:
            name, report = finished.get()
            if isinstance(report, BaseException):
                raise report
            kept.add(name, report)
            done += 1
            progress(done, len(requested), name)
    finally:
        stop.set()
        for watcher in watchers if todo else ():
            watcher.join()
    return _assemble({name: kept.reports[name] for name in requested}, used)


def _assemble(reports: dict[str, Any], engines: Sequence[str]) -> Matrix:
    native: dict[str, dict[str, Any]] = {}
    operations = {}
    for name, report in reports.items():
        operations[name] = {"category": report["category"], "engines": report["engines"]}
        for engine, found in report["native"].items():
            native.setdefault(engine, {}).update(found)
    return {"format": FORMAT, "versions": versions(engines), "operations": operations, "native": native}


def versions(engines: Sequence[str]) -> dict[str, str]:
    """Versions that a measurement applies to."""
    found = {"ember_ml": ember_ml.__version__, "python": platform.python_version()}
    for name in engines:
        engine = backends.homes()[name].engine
        try:
            found[name] = metadata.version(engine)
        except metadata.PackageNotFoundError:
            found[name] = str(getattr(backends.load(name).module, "__version__", "unknown"))
    return found


class _Partial:
    """Reports by operation, in a file of one JSON object per line. The first line holds the versions they apply to."""

    def __init__(self, path: Path | None, engines: Sequence[str], modules: Sequence[str]) -> None:
        self.path = path
        self.reports: dict[str, Any] = {}
        if path is None:
            return
        head = {"format": FORMAT, "versions": versions(engines), "source": _fingerprint(), "modules": list(modules)}
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        if lines and _parse(lines[0]) == head:
            for line in lines[1:]:
                found = _parse(line)
                if found:
                    self.reports[found["op"]] = found["report"]
        # The file is rewritten, since its last line may be incomplete.
        text = "\n".join(map(json.dumps, [head, *({"op": k, "report": v} for k, v in self.reports.items())]))
        atomic.write(path, text + "\n", parents=True)

    def add(self, name: str, report: Any) -> None:
        self.reports[name] = report
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"op": name, "report": report}) + "\n")


def _parse(line: str) -> Any:
    try:
        return json.loads(line)
    except json.JSONDecodeError:
        return None


def _fingerprint() -> str:
    """Digest of the source of the library. Results for other sources are not reused."""
    digest = hashlib.sha256()
    for path in sorted(Path(ember_ml.__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _watch(
    waiting: queue.SimpleQueue[str],
    finished: queue.SimpleQueue[tuple[str, Any]],
    engines: Sequence[str],
    modules: Sequence[str],
    limit: float,
    stop: threading.Event,
) -> None:
    """Measure the waiting operations in a worker process, which is replaced if it dies."""
    worker = None
    try:
        while not stop.is_set():
            try:
                name = waiting.get_nowait()
            except queue.Empty:
                return
            verdicts: dict[str, str] = {}
            report = None
            while report is None and not stop.is_set():
                worker = worker or _Worker(engines, modules, limit, stop)
                report = worker.measure(name, verdicts)
                if report is None:
                    worker.close()
                    worker = None
            finished.put((name, report))
    except BaseException as error:
        finished.put(("", error))
    finally:
        if worker is not None:
            worker.close()


class _Worker:
    """Worker process in its own temporary folder."""

    def __init__(self, engines: Sequence[str], modules: Sequence[str], limit: float, stop: threading.Event) -> None:
        self.limit, self.stop = limit, stop
        self.folder = tempfile.TemporaryDirectory(prefix="ember-ml-")
        quiet = {
            "OMP_NUM_THREADS": "1",
            "MKL_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "PYTHONWARNINGS": "ignore",
        }
        paths = [str(Path(ember_ml.__file__).parent.parent), *(path or os.getcwd() for path in sys.path)]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ember_ml.tools.workers", ",".join(engines), *modules],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self.folder.name,
            env={**os.environ, **quiet, "PYTHONPATH": os.pathsep.join(paths)},
        )
        self.rest = b""
        if self._line(_START_LIMIT) != "ready":
            self.close()
            command = " ".join(["python -m ember_ml.tools.workers", ",".join(engines), *modules])
            raise EmberError(f"a worker process must start, got none from {command}")

    def measure(self, name: str, verdicts: dict[str, str]) -> Any:
        """Report of an operation; ``None``, with a new entry in ``verdicts``, if the process died or hung."""
        assert self.process.stdin is not None
        place, end = f"{REFERENCE} -1", "crash"
        try:
            self.process.stdin.write(json.dumps({"op": name, "verdicts": verdicts}).encode() + b"\n")
            self.process.stdin.flush()
            while True:
                line = self._line(self.limit)
                if line.startswith("@ "):
                    place = line[2:]
                elif line:
                    return json.loads(line)["report"]
                else:
                    break
        except TimeoutError:
            end = "hang"
        except BrokenPipeError:
            pass
        verdicts[place] = end
        where = place.rpartition(" ")[0]
        if sum(1 for known in verdicts if known.rpartition(" ")[0] == where) >= _MOST_VERDICTS:
            verdicts[f"{where} *"] = end
        return None

    def _line(self, limit: float) -> str:
        """Next line of the output of the process; empty at its end."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + limit
        while b"\n" not in self.rest:
            if self.stop.is_set():
                return ""
            ready, _, _ = select.select([self.process.stdout], [], [], 0.2)
            if ready:
                found = os.read(self.process.stdout.fileno(), 1 << 16)
                if not found:
                    return ""
                self.rest += found
            elif time.monotonic() > deadline:
                raise TimeoutError
        line, _, self.rest = self.rest.partition(b"\n")
        return line.decode()

    def close(self) -> None:
        """End the process and remove its folder."""
        self.process.kill()
        self.process.communicate()
        self.folder.cleanup()


def check_names(names: Iterable[str], known: Collection[str]) -> None:
    """Raise an error unless all names are names of operations."""
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "ember-ml ops list shows all names"
            raise UsageError(f"an operation must be one that is known, got {name!r}; {hint}")


def read(path: Path) -> Matrix:
    """Matrix from a file."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"{path} must be a file, got none") from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise UsageError(f"{path} must be a matrix, got something else: {error}") from None
    if not isinstance(found, dict) or not isinstance(found.get("operations"), dict):
        raise UsageError(f"{path} must be a matrix, as ember-ml ops measure writes it")
    if found.get("format") != FORMAT:
        raise UsageError(f"{path} must have format {FORMAT}, which this version reads, got {found.get('format')!r}")
    if not isinstance(found.get("versions"), dict) or not isinstance(found.get("native"), dict):
        raise UsageError(f"{path} must be a matrix with versions and native functions")
    for name, operation in found["operations"].items():
        if not _is_operation(operation):
            raise UsageError(f"{path} must be a matrix, got something unreadable for {name!r}")
    return found


def _is_operation(entry: Any) -> bool:
    """Whether an entry of a file has the structure described in ``help("ember_ml.tools")``."""
    if not isinstance(entry, dict) or not isinstance(entry.get("engines"), dict):
        return False
    return all(
        isinstance(engine, dict)
        and engine.get("status") in STATUSES
        and all(isinstance(engine.get(kind), dict) for kind in ("dtypes", "keywords"))
        and {*engine["dtypes"].values(), *engine["keywords"].values()}.issubset(STATUSES)
        and isinstance(engine.get("differences"), list)
        for engine in entry["engines"].values()
    )


def write(matrix: Matrix, path: Path) -> None:
    """Write a matrix with one line per operation and engine, so that its diffs are readable."""
    atomic.write(path, text(matrix), parents=True)


def text(matrix: Matrix) -> str:
    """Text of the file of a matrix."""
    flat = json.dumps

    def block(name: str, items: Iterable[tuple[str, str]], indent: str) -> str:
        lines = ",\n".join(f"{indent}  {flat(key)}: {value}" for key, value in items)
        return f"{indent}{flat(name)}: {{\n{lines}\n{indent}}}"

    operations = []
    for name, operation in matrix["operations"].items():
        engines = block("engines", ((e, flat(entry)) for e, entry in operation["engines"].items()), "      ")
        operations.append((name, f'{{\n      "category": {flat(operation["category"])},\n{engines}\n    }}'))
    native = [
        block(engine, ((path, flat(entry)) for path, entry in found.items()), "    ")
        for engine, found in matrix["native"].items()
    ]
    head = f'  "format": {matrix["format"]},\n  "versions": {flat(matrix["versions"])}'
    tail = '  "native": {\n' + ",\n".join(native) + "\n  }"
    return "{\n" + ",\n".join([head, block("operations", operations, "  "), tail]) + "\n}\n"


def worse(lock: Matrix, matrix: Matrix, names: Iterable[str]) -> list[str]:
    """Regressions of these operations since ``lock``: a sentence for each status that comes later in ``STATUSES``."""
    found = []
    for name in names:
        then, now = lock["operations"][name], matrix["operations"][name]
        for engine, before in then["engines"].items():
            after = now["engines"].get(engine)
            if after is None:
                continue
            pairs = [("", before["status"], after["status"])]
            for kind in ("dtypes", "keywords"):
                pairs += [
                    (f" ({kind[:-1]} {key})", status, after[kind].get(key, "missing"))
                    for key, status in before[kind].items()
                ]
            example = next((f": {d['input']}" for d in after["differences"]), "")
            found += [
                f"{name} on {engine}{what}: {old} became {new}{example}"
                for what, old, new in pairs
                if STATUSES.index(new) > STATUSES.index(old)
            ]
    return found


def gone(lock: Matrix, names: Iterable[str]) -> list[str]:
    """Operations in a lock that no longer exist."""
    known = set(names)
    return [name for name in lock["operations"] if name not in known]


def sample(names: Sequence[str], count: int, seed: int) -> list[str]:
    """Sample of the names, determined by the seed."""
    return random.Random(seed).sample(sorted(names), min(count, len(names)))
