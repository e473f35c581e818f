"""Worker process, which runs the cases of operations on every engine and reports the results.

It reads one JSON object per line, ``{"op": name, "verdicts": {"torch 12": "crash"}}``. It writes a line such as
``@ torch 12`` before each case, and one JSON object when the operation is done. So the parent process knows which case
was running if the worker crashes or hangs, and can start another worker that skips the case.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import ember_ml
from ember_ml import backend as backends
from ember_ml import ops
from ember_ml.backend import Backend
from ember_ml.dispatch import REGISTRY, Operation
from ember_ml.dtypes import DTYPES, EmberDType, default_float, find
from ember_ml.errors import LinAlgError, UnsupportedError
from ember_ml.testing import comparison, inputs
from ember_ml.testing.comparison import host, leaves
from ember_ml.testing.inputs import Case
from ember_ml.testing.samples import given
from ember_ml.tools import REFERENCE, STATUSES, UsageError

MOST_DIFFERENCES = 3

# Modules of an engine that may have a function of the same name, the most common first.
NATIVE = {
    "numpy": ("numpy", "numpy.linalg", "numpy.fft"),
    "torch": ("torch", "torch.linalg", "torch.fft", "torch.special", "torch.nn.functional"),
}

# Categories of operations on functions, files and devices: native functions of the same name do something else, or
# compile for minutes.
EXCLUDED = ("control", "device", "io")

# Operations whose native namesake changes a global setting, which would affect all later cases.
SETTINGS = ("set_default_dtype",)

# Operations whose values are not specified: only structure, shape and dtype are compared.
UNDEFINED = {
    "empty": "the memory as it was found",
    "empty_like": "the memory as it was found",
    "get_default_device": "another one on each engine",
    "memory_info": "bytes in use at the moment of the call",
    "memory_usage": "bytes in use at the moment of the call",
}

# Error classes that programs catch. An error may be an instance of several.
_FAMILIES = (UnsupportedError, LinAlgError, IndexError, TypeError, ValueError)


class Outcome(NamedTuple):
    """Outcome of a call: the leaves of its result on the host, or the classes that its error is an instance of."""

    leaves: list[tuple[str, Any]] | None
    errors: tuple[str, ...] = ()

    def text(self) -> str:
        """Short description."""
        if self.leaves is None:
            return self.errors[0]
        shown = ", ".join(_leaf_text(leaf) for path, leaf in self.leaves if not path.endswith(".length"))
        return shown if len(shown) <= 100 else shown[:97] + "..."


def _leaf_text(leaf: Any) -> str:
    if not hasattr(leaf, "dtype") or isinstance(leaf, str):
        return repr(leaf)
    return f"{find(leaf.dtype) or leaf.dtype}{list(leaf.shape)} {' '.join(str(leaf.tolist()).split())}"


def run_case(backend: Backend, function: Callable[..., Any], case: Case) -> Outcome:
    """Outcome of calling a function with a case on an engine."""
    try:
        args = tuple(native(backend, value) for value in case.args)
        kwargs = {name: native(backend, value) for name, value in case.kwargs.items()}
        return Outcome([(path, _shown(leaf)) for path, leaf in leaves(function(*args, **kwargs))])
    except Exception as error:
        families = tuple(f.__name__ for f in _FAMILIES if isinstance(error, f))
        return Outcome(None, families or (type(error).__name__,))


def native(backend: Backend, value: Any) -> Any:
    """``value`` with host arrays converted to tensors of the engine, also inside containers."""
    if isinstance(value, backends.load(REFERENCE).tensors):
        return backend.convert(value, None, backend.device)
    if type(value) in (list, tuple):
        return type(value)(native(backend, item) for item in value)
    if type(value) is dict:
        return {key: native(backend, item) for key, item in value.items()}
    return value


def _shown(leaf: Any) -> Any:
    """A leaf of a result as it is compared: a host array, a number, a string, or a name for anything else."""
    value = host(leaf)
    if value is not leaf or isinstance(value, backends.load(REFERENCE).tensors):
        return value
    if isinstance(value, (int, float, complex, str, type(None))) and not isinstance(value, EmberDType):
        return value
    return _name_of(value)


def _name_of(value: Any) -> Any:
    """Representation of a value that is neither a tensor nor a number: the name of a dtype, or of its type."""
    dtype = find(value)
    return dtype.name if dtype is not None else f"<{type(value).__name__}>"


def difference(mine: Outcome, theirs: Outcome, tolerance: float | None = None) -> str:
    """First difference of two outcomes: ``error``, ``structure``, ``shape``, ``dtype`` or ``value``; empty if none."""
    if mine.leaves is None or theirs.leaves is None:
        return "" if set(mine.errors) & set(theirs.errors) else "error"
    found = comparison.difference(mine.leaves, theirs.leaves, tolerance)
    return "" if found is None else found.what


class Work:
    """Measurement of one operation."""

    def __init__(self, operation: Operation, name: str, verdicts: dict[str, str], tell: Callable[[str], None]) -> None:
        self.operation, self.name, self.verdicts, self.tell = operation, name, verdicts, tell
        self.engines = sorted(backends.loaded(), key=lambda engine: engine.name != REFERENCE)
        self.cases: list[Case] = []
        self.outcomes: dict[tuple[str, int], Outcome] = {}
        self.statuses: dict[tuple[str, int], str] = {}
        self.differences: dict[str, list[dict[str, str]]] = {}

    def report(self) -> dict[str, Any]:
        """Results of the operation on each engine, and comparisons with native functions of the same name."""
        if not self._dead(REFERENCE, -1):
            self.tell(f"@ {REFERENCE} -1")
            with ember_ml.use_backend(REFERENCE), inputs.quietly():
                self.cases = inputs.cases(self.operation)
        entries = {engine.name: self._engine(engine) for engine in self.engines}
        is_excluded = self.operation.category in EXCLUDED or self.operation.name in SETTINGS
        natives = {} if is_excluded else {name: self._natives(name) for name in NATIVE}
        return {"category": self.operation.category, "engines": entries, "native": natives}

    def _dead(self, place: str, index: int) -> str:
        """``crash`` or ``hang`` if the case is known to end so, or is skipped since too many others did."""
        return self.verdicts.get(f"{place} {index}") or self.verdicts.get(f"{place} *", "")

    def _engine(self, engine: Backend) -> dict[str, Any]:
        provider = engine.provider(self.operation)
        if provider == "missing":
            return self._entry(engine, "missing", provider)
        fatal = self._dead(engine.name, -1)
        if fatal:
            return self._entry(engine, fatal, provider)
        if engine.name != REFERENCE and self._dead(REFERENCE, -1):
            return self._entry(engine, "unmeasured", provider)
        with ember_ml.use_backend(engine.name), inputs.quietly():
            for index, case in enumerate(self.cases):
                status = self._run(engine, index, case)
                if status:
                    self.statuses[engine.name, index] = status
        mine = [self.statuses[engine.name, i] for i in range(len(self.cases)) if (engine.name, i) in self.statuses]
        return self._entry(engine, together(mine, of_all=True), provider)

    def _entry(self, engine: Backend, status: str, provider: str) -> dict[str, Any]:
        measured = {
            i: self.statuses[engine.name, i] for i in range(len(self.cases)) if (engine.name, i) in self.statuses
        }

        def about(kind: str, detail: str) -> str:
            chosen = [measured[i] for i in measured if (self.cases[i].about, self.cases[i].detail) == (kind, detail)]
            return together(chosen)

        optional = dict.fromkeys(case.detail for case in self.cases if case.about == inputs.KEYWORD)
        dtypes = [d for d in DTYPES if any(c.about == inputs.DTYPES_OF and c.detail == d for c in self.cases)]
        return {
            "status": status,
            "provider": provider,
            "cases": len(measured),
            "dtypes": {name: about(inputs.DTYPES_OF, name) for name in dtypes},
            "keywords": {name: about(inputs.KEYWORD, name) for name in optional},
            "differences": self.differences.get(engine.name, []),
        }

    def _run(self, engine: Backend, index: int, case: Case) -> str:
        """Status of one case on one engine; empty if there is no reference to compare with."""
        if (REFERENCE, index) not in self.outcomes and engine.name != REFERENCE:
            return ""
        dead = self._dead(engine.name, index)
        if dead:
            self._note(engine, case, dead, None, None)
            return dead
        if not _storable(engine, case):
            return "unsupported"
        self.tell(f"@ {engine.name} {index}")
        mine, again = self._run_twice(engine, self.operation.call, case)
        if engine.name == REFERENCE:
            self.outcomes[engine.name, index] = mine
            expected = mine
        else:
            self.outcomes[engine.name, index] = mine
            expected = self.outcomes[REFERENCE, index]
        if self._difference(again, mine, exact=True):
            return self._note(engine, case, "flaky", mine, again)
        if UnsupportedError.__name__ in set(mine.errors) - set(expected.errors):
            return "unsupported"
        what = self._difference(mine, expected)
        if not what:
            return "refused" if mine.leaves is None else "same"
        status = "fails" if mine.leaves is None and expected.leaves is not None else "differs"
        self._note(engine, case, what, expected, mine)
        return status

    def _difference(self, mine: Outcome, theirs: Outcome, exact: bool = False) -> str:
        found = difference(mine, theirs, 0.0 if exact else given(self.operation, "TOLERANCE"))
        return "" if found == "value" and self.operation.name in UNDEFINED else found

    def _note(self, engine: Backend, case: Case, what: str, expected: Outcome | None, mine: Outcome | None) -> str:
        found = self.differences.setdefault(engine.name, [])
        noted = _describe_difference(case, self.operation.name, what, expected, mine)
        if len(found) < MOST_DIFFERENCES and noted not in found:
            found.append(noted)
        return what

    def _run_twice(self, engine: Backend, function: Callable[..., Any], case: Case) -> tuple[Outcome, Outcome]:
        """Outcomes of two runs of one case, from the same random state and defaults."""
        both: list[Outcome] = []
        for _ in range(2):
            floating, device = default_float(), engine.chosen_device
            _seed()
            both.append(run_case(engine, function, case))
            if default_float() is not floating:
                # Reset with the operation, which also updates what other operations derive from the default.
                ops.set_default_dtype(floating)
            engine.choose_device(device)
        return both[0], both[1]

    def _natives(self, engine_name: str) -> dict[str, Any]:
        """Comparisons of the operation with the native functions of an engine that have its name."""
        if engine_name not in {engine.name for engine in self.engines}:
            return {}
        engine = backends.load(engine_name)
        found = {}
        for path, function in native_functions(engine_name, self.operation):
            with ember_ml.use_backend(engine_name), inputs.quietly():
                found[path] = self._native(engine, path, function)
        return found

    def _native(self, engine: Backend, path: str, function: Callable[..., Any]) -> dict[str, Any]:
        agreed: dict[tuple[str, str], list[bool]] = {}
        taken: set[str] = set()
        differences: list[dict[str, str]] = []
        known = _parameters(function)
        for index, case in enumerate(self.cases):
            expected = self.outcomes.get((engine.name, index))
            foreign = known is not None and not set(case.kwargs) <= set(known)
            # Behavior for invalid types does not matter when a call is rewritten. Samples use options of the operation.
            if expected is None or foreign or case.about in (inputs.NONSENSE, inputs.SAMPLE):
                continue
            mine = self._native_outcome(engine, path, function, index, case)
            what = self._difference(mine, expected)
            if case.about == inputs.KEYWORD:
                if mine.leaves is not None:
                    taken.add(case.detail)
                if not all(agreed.get((inputs.DTYPES_OF, name), [True])[0] for name in _dtypes(case)):
                    continue  # the dtype differs already, with or without the keyword
            agreed.setdefault((case.about, case.detail), []).append(not what)
            if what and not differences:
                differences.append(_describe_difference(case, path, what, expected, mine))

        def same(*kinds: str) -> bool:
            return all(all(found) for (about, _), found in agreed.items() if about in kinds)

        def of(kind: str) -> dict[str, bool]:
            return {detail: all(found) for (about, detail), found in agreed.items() if about == kind}

        parts = {
            "arrays": same(inputs.EXAMPLE, inputs.DTYPES_OF, inputs.SHAPES, inputs.SPECIAL),
            "mixed": same(inputs.MIXED),
            "python": same(inputs.PYTHON),
            "errors": same(inputs.ERROR),
        }
        return {
            "op": self.name,
            "same": all(parts.values()),
            **parts,
            "dtypes": of(inputs.DTYPES_OF),
            "keywords": {name: agrees for name, agrees in of(inputs.KEYWORD).items() if name in taken},
            "parameters": self._by_position(known),
            "differences": differences,
        }

    def _native_outcome(
        self, engine: Backend, path: str, function: Callable[..., Any], index: int, case: Case
    ) -> Outcome:
        place = f"native:{path}"
        dead = self._dead(place, index)
        if dead:
            return Outcome(None, (dead,))
        self.tell(f"@ {place} {index}")
        return self._run_twice(engine, function, case)[0]

    def _by_position(self, known: list[str] | None) -> list[str]:
        """Leading parameters that have the same position in both functions."""
        mine = [p.name for p in self.operation.parameters if not p.keyword]
        required = [p for p in self.operation.parameters if not p.keyword and p in self.operation.tensors]
        if known is None:
            return [p.name for p in required]
        # Tensors come first in both functions, possibly under different names.
        leading = len(required) if mine[: len(required)] == [p.name for p in required] else 0
        for ours, theirs in zip(mine[leading:], known[leading:], strict=False):
            if ours != theirs:
                break
            leading += 1
        return mine[:leading]


def together(statuses: list[str], of_all: bool = False) -> str:
    """Combined status: the worst if any is worse than ``unmeasured``, otherwise the most informative."""
    worst = max(statuses, key=STATUSES.index, default="unmeasured")
    if STATUSES.index(worst) > STATUSES.index("unmeasured"):
        return worst
    for status in ("same", "unsupported") if of_all else ("same", "unsupported", "refused"):
        if status in statuses:
            return status
    return "unmeasured"


def _describe_difference(
    case: Case, name: str, what: str, expected: Outcome | None, mine: Outcome | None
) -> dict[str, str]:
    noted = {"input": case.text(name), "what": what}
    if expected is not None and mine is not None:
        noted |= {"reference": expected.text(), "engine": mine.text()}
    return noted


def _storable(engine: Backend, case: Case) -> bool:
    """Whether the engine supports the dtypes of the arrays of a case."""
    return _dtypes(case) <= set(engine.dtypes)


def _dtypes(case: Case) -> set[str]:
    """Dtypes of the arrays of a case."""
    return {str(leaf.dtype) for value in (*case.args, *case.kwargs.values()) for leaf in _arrays(value)}


def _arrays(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _arrays(item)
    elif isinstance(value, backends.load(REFERENCE).tensors):
        yield value


def native_functions(engine: str, operation: Operation) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Functions of an engine that have one of the names of the operation, each with its dotted name."""
    names = [operation.name]
    names += [name for name, value in vars(ops).items() if value is operation.call and name != operation.name]
    for place in NATIVE[engine]:
        module = importlib.import_module(place)
        for name in names:
            found = getattr(module, name, None)
            if callable(found) and not inspect.isclass(found):
                yield f"{place}.{name}", found


def _parameters(function: Callable[..., Any]) -> list[str] | None:
    """Names of the parameters of a function; ``None`` if they are not available or variadic."""
    try:
        known = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return None
    variadic = any(p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL) for p in known.values())
    return None if variadic else list(known)


def _seed() -> None:
    seed = getattr(getattr(ops, "random", None), "set_seed", None)
    if seed is not None:
        seed(0)


def known_operations(modules: list[str]) -> dict[str, Operation]:
    """Operations of the library and of the named modules."""
    found = dict(REGISTRY)
    for name in modules:
        try:
            module = importlib.import_module(name)
        except ImportError as error:
            raise UsageError(f"the module {name} must import, got {error}") from error
        for value in vars(module).values():
            operation = getattr(value, "__operation__", None)
            if operation is not None and operation.module == name:
                found[operation.name] = operation
    return found


def main(engines: list[str], modules: list[str]) -> None:
    """Process requests until the input ends."""
    out = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    tempfile.tempdir = os.getcwd()
    operations = known_operations(modules)
    for name in engines:
        backends.load(name)
    ember_ml.set_backend(REFERENCE)

    def tell(line: str) -> None:
        os.write(out, line.encode() + b"\n")

    tell("ready")
    for line in sys.stdin:
        task = json.loads(line)
        work = Work(operations[task["op"]], task["op"], task["verdicts"], tell)
        tell(json.dumps({"done": task["op"], "report": work.report()}))


if __name__ == "__main__":
    main(sys.argv[1].split(","), sys.argv[2:])
