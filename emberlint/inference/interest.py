"""Relevance: which functions and statements mention an engine, an operation or a tensor.

The pass is fast because it skips the rest, which is most of a file. More names become relevant during the pass: tensors
of the module, functions that return them, attributes that hold them.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Iterable
from typing import Any

from emberlint.config import ENGINES
from emberlint.inference.checks import HOST_VALUES, IMPORTS, Checks
from emberlint.inference.values import Value
from emberlint.knowledge.engines import BACKEND_NAMES, EMBER, engine_of
from emberlint.knowledge.types import REFERENCE, TENSOR
from emberlint.source.text import ANY, ENDS, UNDOTTED, Source

_WORD = re.compile(rb"[A-Za-z_]\w*")
_BACKENDS = tuple(ending.encode() for ending in BACKEND_NAMES)
_QUOTED = tuple(f"{quote}{engine}{quote}".encode() for engine in ENGINES for quote in "\"'")
_RELEVANT = frozenset({b"__import__", b"import_module", b"get_backend", b"backend", b"yield", b"await"})
_ANNOTATED = frozenset({b"KerasTensor", b"EmberTensor", b"get_backend"})
_ALWAYS = frozenset({b"import", b"import_module", b"Tensor", b"ndarray", b"NDArray", b"backend"})
_ROOTS = frozenset(name.encode() for name in (*ENGINES, "ember_ml", "ml_dtypes"))
_TENSORS = frozenset(name.encode() for name in ENGINES if name != "numpy")
_NO_HOST = frozenset({b"backend", b"Tensor"})
_TO_HOST = frozenset({b"numpy", b"item", b"tolist", b"float", b"int", b"bool", b"complex"})


def _is_tensors(value: Value) -> bool:
    return engine_of(value.path) not in ("numpy", EMBER, "")


def _may_branch(data: bytes) -> bool:
    """Whether a text mentions a backend and an engine's name in quotes."""
    return (b"backend" in data or b"BACKEND" in data) and any(name in data for name in _QUOTED)


class Places:
    """Offsets of some words in a source, each with the set of bytes that may follow it."""

    __slots__ = ("_places", "_starts")

    def __init__(self, source: Source, texts: Iterable[tuple[bytes, frozenset[int]]]) -> None:
        self._starts = source.starts
        self._places = places = [len(source.data) + 1]
        for text, after in texts:
            places += source.places(text, after=after)
        places.sort()

    def are_in(self, node: Any) -> bool:
        """Whether one of the words is in the lines of a node."""
        places, starts = self._places, self._starts
        end: int = starts[node.end_lineno]
        return places[bisect_left(places, starts[node.lineno - 1])] < end


class Interest:
    """The relevant names of a file.

    ``all`` means that every function is relevant, ``thorough`` that every statement is. ``relevant`` are the names that
    make a statement relevant, ``fresh`` those that were found to be arrays since functions were last skipped. ``host``
    means that only host values matter, ``branches`` that there may be conditions on a backend's name.
    """

    __slots__ = (
        "_fixed",
        "_places",
        "_tensors",
        "_touched",
        "all",
        "branches",
        "fresh",
        "host",
        "relevant",
        "source",
        "thorough",
    )

    def __init__(self, source: Source, thorough: bool = False) -> None:
        self.source = source
        self.thorough = thorough
        self.all = True
        self.relevant: set[bytes] = set()
        self.fresh: set[str] = set()
        self.host = False
        self.branches = _may_branch(source.data)
        self._fixed = False
        self._tensors: set[bytes] = set()
        self._places: Places  # set by ``read``
        self._touched: dict[ast.AST, bool] = {}

    def read(self, namespace: str, checks: Checks, frontend: bool) -> None:
        """Find the names in the text that the imports make relevant to some checks."""
        self.relevant.update(_RELEVANT)
        if checks.subject == IMPORTS and not self.thorough:
            self.all, self._places, self._fixed = False, self.places({b"import"}), True
            return
        names = self._imported(_ROOTS | {namespace.partition(".")[0].encode()})
        if names is None:
            self.thorough = True
            return
        self.all = False
        self.relevant |= names
        backends = self._backends()
        undotted: set[bytes] = set()
        if frontend and ast.FunctionDef not in checks.on:
            # Frontend rules look only for branches on a backend's name, so attributes of ``backend`` are not relevant.
            # Arrays may be known by annotation only.
            undotted = {b"backend"}
            self.relevant |= _ANNOTATED
            names = (names | _ANNOTATED) - undotted
        if checks.subject == HOST_VALUES and self._tensors and not self.thorough:
            # A value computed from tensors is a tensor, until one of these words converts it to a host value.
            self.host = True
            names = (names - self._tensors - _NO_HOST) | _TO_HOST
        self.relevant |= backends
        self._places = self.places(names | backends, undotted)

    def note(self, name: str, value: Value) -> None:
        """Record that a name holds an array, an object of an engine, or an instance of a class."""
        if self._fixed or (self.host and (value.kind == TENSOR or (value.kind == REFERENCE and _is_tensors(value)))):
            return
        self.fresh.add(name)

    def _backends(self) -> set[bytes]:
        """Words of the text that may hold a backend's name, except the word ``backend``."""
        if not self.branches:
            return set()
        data = self.source.data
        found: set[bytes] = set()
        for ending in _BACKENDS:
            for place in self.source.places(ending, before=ANY):
                start = place
                while start and data[start - 1] not in ENDS:
                    start -= 1
                found.add(data[start : place + len(ending)])
        return found - {b"backend"}

    def _imported(self, roots: Iterable[bytes]) -> set[bytes] | None:
        """Names that make a function relevant; ``None`` if every function is."""
        names = set(_ALWAYS)
        for module, bound, plain in self.source.imports():
            if plain is not None:
                for part in plain.split(b","):
                    words = _WORD.findall(part)
                    if words and words[0] in roots:
                        names.add(words[-1] if b" as " in part else words[0])
                        if words[0] in _TENSORS:
                            self._tensors.add(words[-1] if b" as " in part else words[0])
            elif module.startswith(b".") or module.partition(b".")[0] in roots:
                if b"*" in bound:
                    return None
                names.update(_WORD.findall(bound))
                if module.partition(b".")[0] in _TENSORS:
                    self._tensors.update(_WORD.findall(bound))
        names.discard(b"as")
        return names

    def places(self, names: Iterable[bytes], undotted: Iterable[bytes] = ()) -> Places:
        """Offsets of some names, and of others where no dot follows."""
        return Places(self.source, [*[(name, ENDS) for name in names], *[(name, UNDOTTED) for name in undotted]])

    def touches(self, node: Any) -> bool:
        """Whether the lines of a node mention a name that the file's imports make relevant."""
        if self.all:
            return True
        known = self._touched.get(node)
        if known is None:
            known = self._touched[node] = self._places.are_in(node)
        return known

    def is_relevant(self, node: Any) -> bool:
        """Whether the lines of a node mention a relevant name; other nodes need not be visited."""
        if self.thorough:
            return True
        source, is_irrelevant = self.source, self.relevant.isdisjoint
        starts = source.starts
        first, last = node.lineno, node.end_lineno
        start, end = starts[first - 1], starts[first]
        if not is_irrelevant(source.words(start, end)):
            return True
        if first != last:
            # Long statements are mostly numbers, and their relevant words are mostly in the first line.
            second, end = end, starts[last]
            if not is_irrelevant(source.words(second, end)):
                return True
        return source.has_walrus and b":=" in source.data[start:end]
