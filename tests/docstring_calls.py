"""Calls in the examples of NumPy's and JAX's own docstrings, repeated through ``ops`` on each engine.

The examples run natively, with proxies in place of the library's functions, which record every call of a function that
``ops`` has under the same name. ``figures`` makes such calls through ``ops``, with the arrays as tensors of the engine,
and compares the results: structure, shapes and values, and the kinds of dtypes, since dtypes follow our own promotion.

``python tests/docstring_calls.py [jax]`` prints the figures of each engine, and every call that does not agree.
"""

from __future__ import annotations

import contextlib
import copy
import doctest
import importlib
import inspect
import io
import sys
import tempfile
import types
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import ember_ml
from ember_ml import backend as backends
from ember_ml import ops
from ember_ml.backend import Backend
from ember_ml.ops.aliases import Elsewhere
from ember_ml.testing.comparison import TOLERANCE, host, is_close, leaves
from ember_ml.testing.programs import Attempt, Job, attempts

# Results are only allocated, so that there are no values to compare.
UNINITIALIZED = {"empty", "empty_like"}
# Calls of one function in one example that are kept, so that loops do not count more than other examples.
MOST_PER_EXAMPLE = 3
# Elements of a tensor in a call that is kept.
MOST_ELEMENTS = 20_000
# Calls that an engine computes at once, if it compiles each.
PER_PROGRAM = 40
# Functions whose examples read and write files in fixed places.
FILES = {"load", "save", "savez", "savez_compressed", "loadtxt", "savetxt", "genfromtxt", "fromfile", "fromregex"}
# Decompositions are unique up to the signs or phases of vectors, and ``ops`` orders general eigenvalues.
UP_TO_PHASE = {"qr", "svd", "eig", "eigh", "eigvals"}
# Dtypes that ``ops`` has; those left over are structured, object, string, date and extended ones.
KINDS = "biufc"


class Call(NamedTuple):
    """A call that an example made, and what it returned; ``line`` is the source of the example."""

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: Any
    line: str

    @property
    def key(self) -> str:
        return f"{self.name}: {' '.join(self.line.split())}"


class Library(NamedTuple):
    """A library with NumPy's functions: its module, and the namespaces that have counterparts in ``ops``."""

    module: str
    alias: str
    namespaces: tuple[str, ...]


LIBRARIES = {
    "numpy": Library("numpy", "np", ("linalg", "fft")),
    "jax": Library("jax.numpy", "jnp", ("linalg", "fft")),
}


def counterpart(namespace: str, name: str) -> Callable[..., Any] | None:
    """The operation of ``ops`` with the name of a function of ``namespace``."""
    place = getattr(ops, namespace) if namespace == "linalg" else ops
    found = getattr(place, name, None) or (getattr(ops, name, None) if namespace else None)
    return found if callable(found) and not isinstance(found, (type, Elsewhere)) else None


class Recorder:
    """Runs examples, and keeps the calls that they make."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self.module = importlib.import_module(library.module)
        self.calls: list[Call] = []
        self.line = ""
        self.seen: Counter[tuple[str, str]] = Counter()
        self.distinct: set[str] = set()
        self.depth = 0
        self.proxies: dict[int, Any] = {}
        self.proxy = self.namespace("", self.module)
        for name in library.namespaces:
            setattr(self.proxy, name, self.namespace(name, getattr(self.module, name)))

    def namespace(self, name: str, module: Any) -> Any:
        proxy = types.ModuleType(module.__name__)
        for each in dir(module):
            value = getattr(module, each)
            is_function = callable(value) and not isinstance(value, type) and not each.startswith("_")
            if is_function and counterpart(name, each) is not None:
                value = Proxy(self, f"{name}.{each}" if name else each, value)
            setattr(proxy, each, value)
        self.proxies[id(module)] = proxy
        return proxy

    def record(self, name: str, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        if self.depth:
            return function(*args, **kwargs)
        key = (self.line, name)
        self.seen[key] += 1
        if self.seen[key] > MOST_PER_EXAMPLE or not is_small((args, kwargs)):
            return function(*args, **kwargs)
        given = copied(args), copied(kwargs)
        self.depth += 1
        try:
            result = function(*args, **kwargs)
        finally:
            self.depth -= 1
        if result is None and args and isinstance(args[0], np.ndarray):
            # NumPy writes to the argument where ``ops`` returns a tensor.
            result = args[0]
        if is_small(result):
            call = Call(name, *given, copied(result), self.line.strip())
            if is_counted(call) and (text := _text(call)) not in self.distinct:
                self.distinct.add(text)
                self.calls.append(call)
        return result

    def run(self, documented: str) -> None:
        """Run the examples of one docstring."""
        names: dict[str, Any] = {self.library.alias: self.proxy, "np": self.proxy if self.library.alias == "np" else np}
        if self.library.module != "numpy":
            names["jax"] = importlib.import_module(self.library.module.partition(".")[0])
        for example in doctest.DocTestParser().get_examples(documented):
            if "plt" in example.source or "matplotlib" in example.source:
                continue
            self.line = example.source
            with contextlib.suppress(Exception):
                # Once is enough where an example measures time.
                exec(compile(example.source.replace("range(500)", "range(1)"), "<example>", "single"), names)
            for name, value in list(names.items()):
                if isinstance(value, types.ModuleType) and id(value) in self.proxies:
                    names[name] = self.proxies[id(value)]


class Proxy:
    """A function that records its calls, with the attributes of the function."""

    def __init__(self, recorder: Recorder, name: str, function: Callable[..., Any]) -> None:
        self._recorder, self._name, self._function = recorder, name, function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = tuple(map(_bare, args)), {k: _bare(v) for k, v in kwargs.items()}
        return self._recorder.record(self._name, self._function, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)


def _text(call: Call) -> str:
    """What distinguishes a call from others: calls such as ``np.array([1, 2, 3])`` are in many examples."""
    with np.printoptions(threshold=50):
        return f"{call.name}{call.args!r}{call.kwargs!r}"


def _bare(value: Any) -> Any:
    return value._function if isinstance(value, Proxy) else value


def is_small(value: Any) -> bool:
    """Whether a value holds few elements: large ones, which measure time or memory, say nothing about the call."""
    if isinstance(value, (list, tuple, dict)):
        return len(value) <= MOST_ELEMENTS and all(map(is_small, value.values() if isinstance(value, dict) else value))
    return bool(getattr(value, "size", 0) <= MOST_ELEMENTS) if hasattr(value, "dtype") else True


def copied(value: Any) -> Any:
    """``value`` with its arrays copied to NumPy arrays, so that later lines of the example do not change them."""
    if isinstance(value, (list, tuple)):
        items = [copied(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, dict):
        return {name: copied(item) for name, item in value.items()}
    if isinstance(value, np.ndarray) or (hasattr(value, "__jax_array__") or type(value).__name__ == "ArrayImpl"):
        return np.array(value)
    return value if isinstance(value, (type, types.FunctionType)) else copy.copy(value)


def is_counted(call: Call) -> bool:
    """Whether the call has none of what ``ops`` leaves out by design."""
    operands = 1 if call.name in ("isneginf", "isposinf") else getattr(getattr(np, call.name, None), "nin", 99)
    values = [leaf for part in (call.args, call.kwargs, call.result) for _, leaf in leaves(part)]
    arrays = [value for value in values if isinstance(value, (np.ndarray, np.generic, np.dtype))]
    if any((v if isinstance(v, np.dtype) else v.dtype).kind not in KINDS for v in arrays):
        return False
    if any(isinstance(v, np.ndarray) and v.dtype.itemsize // (1 + (v.dtype.kind == "c")) > 8 for v in arrays):
        return False
    if (
        len(call.args) > operands
        or {"out", "order"} & set(call.kwargs)
        or any(isinstance(v, (bytes, np.ma.MaskedArray)) for v in values)
    ):
        return False
    if any(type(v).__module__ == "datetime" or v is object for v in values):
        return False
    given = call.args[1:] if call.name in ("einsum", "pad") else call.args
    dtype = call.kwargs.get("dtype")
    return not any(isinstance(v, str) and v[:1] in "SUMmO" and v[1:2].isdigit() for v in (*given, dtype))


def documented(module: Any) -> Iterator[str]:
    """Docstrings of the public functions of a module."""
    for name in sorted(dir(module)):
        value = getattr(module, name)
        if not name.startswith("_") and callable(value) and not isinstance(value, type) and name not in FILES:
            yield inspect.getdoc(value) or ""


def record(library: str, step: int = 1) -> list[Call]:
    """Calls in the examples of one of ``step`` docstrings of a library."""
    found = LIBRARIES[library]
    recorder = Recorder(found)
    spaces = [recorder.module, *(getattr(recorder.module, name) for name in found.namespaces)]
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        np.errstate(all="ignore"),
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),  # some examples write files
    ):
        warnings.simplefilter("ignore")
        shown = np.get_printoptions()
        for text in list(dict.fromkeys(text for space in spaces for text in documented(space)))[::step]:
            recorder.run(text)
        np.set_printoptions(**shown)
    return recorder.calls


def repeated(calls: list[Call], backend: Backend) -> list[Attempt]:
    """An attempt for each call, which makes it through ``ops`` on the active backend."""
    return [
        attempt
        for first in range(0, len(calls), PER_PROGRAM)
        for attempt in attempts(backend, [_job(call, backend) for call in calls[first : first + PER_PROGRAM]])
    ]


def _job(call: Call, backend: Backend) -> Job:
    """Function of the tensors of a call that makes it through ``ops``, and those tensors."""
    namespace, _, name = call.name.rpartition(".")
    function = counterpart(namespace, name)
    assert function is not None
    tensors: list[Any] = []
    replaced((call.args, call.kwargs), lambda array: tensors.append(backend.convert(array, None, None)))

    def compute(*tensors: Any) -> Any:
        rest = iter(tensors)
        args, kwargs = replaced((call.args, call.kwargs), lambda array: next(rest))
        return function(*args, **kwargs)

    return compute, tensors


def problem(call: Call, attempt: Attempt) -> str | None:
    """Why the call through ``ops`` does not agree; ``None`` if it does."""
    name = call.name.rpartition(".")[2]
    try:
        result = attempt()
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    expected = call.result
    if name in UP_TO_PHASE:
        result, expected = ({path: _magnitude(leaf) for path, leaf in leaves(part)} for part in (result, expected))
    return disagreement(result, expected, compare_values=name not in UNINITIALIZED)


def _magnitude(value: Any) -> Any:
    return np.sort(np.abs(host(value)), axis=-1) if hasattr(value, "dtype") else value


def replaced(value: Any, change: Callable[[np.ndarray], Any]) -> Any:
    """``value`` with its arrays changed."""
    if isinstance(value, np.ndarray):
        return change(value)
    if isinstance(value, dict):
        return {name: replaced(item, change) for name, item in value.items()}
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(replaced(item, change) for item in value)
    return value


def disagreement(result: Any, expected: Any, *, compare_values: bool) -> str | None:
    """How two results differ; dtypes may differ within their kind."""
    found, wanted = list(leaves(result)), list(leaves(expected))
    if [path for path, _ in found] != [path for path, _ in wanted]:
        return f"structure: {[path for path, _ in found]} for {[path for path, _ in wanted]}"
    for (_, a), (_, b) in zip(found, wanted, strict=True):
        if isinstance(b, (type, np.dtype)) or type(b).__name__ in ("finfo", "iinfo"):
            if str(getattr(a, "name", a)) != str(np.dtype(b)) if isinstance(b, (type, np.dtype)) else a.bits != b.bits:
                return f"dtype: {a} for {b}"
            continue
        if isinstance(b, str) or b is None:
            if a != b:
                return f"value: {a!r} for {b!r}"
            continue
        x, y = np.asarray(host(a)), np.asarray(b)
        if x.shape != y.shape:
            return f"shape: {x.shape} for {y.shape}"
        if _kind(x) != _kind(y):
            return f"kind: {x.dtype} for {y.dtype}"
        tolerance = max(TOLERANCE.get(str(x.dtype), 0.0), TOLERANCE.get(str(y.dtype), 0.0))
        if compare_values and not is_close(x, y, tolerance).all():
            return f"value: {np.array2string(x, threshold=8)} for {np.array2string(y, threshold=8)}"
    return None


def _kind(x: Any) -> str:
    return "i" if x.dtype.kind == "u" else "f" if x.dtype.kind == "V" else str(x.dtype.kind)


@dataclass
class Figures:
    """What became of the calls on one engine."""

    calls: int
    reasons: list[tuple[Call, str]]

    @property
    def share(self) -> float:
        return 1 - len(self.reasons) / self.calls

    def text(self) -> str:
        """The figures, and every call that does not agree."""
        return "\n".join([str(self), *(f"{call.key[:150]}\n  {why[:220]}" for call, why in self.reasons)])

    def __str__(self) -> str:
        return f"{self.calls} calls, {self.calls - len(self.reasons)} agree ({self.share:.1%})"


def figures(calls: list[Call], name: str) -> Figures:
    """What became of the calls on the engine ``name``."""
    with ember_ml.use_backend(name):
        backend = backends.load(name)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            made = zip(calls, repeated(calls, backend), strict=True)
            reasons = [(call, why) for call, attempt in made if (why := problem(call, attempt)) is not None]
    return Figures(len(calls), reasons)


def main(library: str = "numpy") -> None:
    calls = record(library)
    for name in ember_ml.get_available_backends():
        print(f"{name}: {figures(calls, name).text()}")


if __name__ == "__main__":
    main(*sys.argv[1:])
