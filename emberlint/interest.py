"""What of a file is worth a visit: the functions and statements that mention an engine, an operation or a tensor.

Most of a file mentions nothing of interest and is not visited at all; that is what makes the pass fast. Which names are
of interest grows as the file tells more: a module's tensors, the functions that answer them, the attributes that hold
them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import Any

from emberlint.checks import HOST_VALUES, IMPORTS, Checks
from emberlint.kinds import EMBER, ENGINES, REFERENCE, TENSOR, Value, engine_of
from emberlint.source import Source, Word, word

_WORD = re.compile(rb"[A-Za-z_]\w*")
_WARM = frozenset({b"__import__", b"import_module", b"get_backend", b"backend", b"yield", b"await"})
_ANNOTATED = frozenset({b"KerasTensor", b"EmberTensor", b"get_backend"})
_ALWAYS = frozenset({b"import", b"import_module", b"Tensor", b"ndarray", b"NDArray", b"backend"})
_ROOTS = frozenset(name.encode() for name in (*ENGINES, "ember_ml", "ml_dtypes"))
_TENSORS = frozenset(name.encode() for name in ENGINES if name != "numpy")
_IMPORT, _BACKEND = word(b"import"), word(b"backend")
_TO_HOST = frozenset({b"numpy", b"item", b"tolist", b"float", b"int", b"bool", b"complex"})


def _is_tensors(value: Value) -> bool:
    return engine_of(value.path) not in ("numpy", EMBER, "")


class Interest:
    """The names of interest in a file.

    ``all`` says that every function is worth a visit, ``thorough`` that every statement of one is. ``warm`` are the
    names that make a statement worth it, ``fresh`` those that have turned out to stand for arrays since functions were
    last passed by for want of a name. ``host`` says that only host values matter.
    """

    __slots__ = (
        "_fixed",
        "_tensors",
        "_touched",
        "_undotted",
        "_words",
        "all",
        "fresh",
        "host",
        "source",
        "thorough",
        "warm",
    )

    def __init__(self, source: Source, thorough: bool = False) -> None:
        self.source = source
        self.thorough = thorough
        self.all = True
        self.warm: set[bytes] = set()
        self.fresh: set[str] = set()
        self.host = False
        self._fixed = False
        self._tensors: set[bytes] = set()
        self._words: tuple[Word, ...] = ()
        self._undotted = False
        self._touched: dict[ast.AST, bool] = {}

    def read(self, namespace: str, checks: Checks, frontend: bool) -> None:
        """Find the names that imports make interesting to some checks, as the text has them."""
        data = self.source.data
        self.warm.update(_WARM)
        if checks.subject == IMPORTS and not self.thorough:
            self.all, self._words, self._fixed = False, (_IMPORT,), True
            return
        names = self._imported(_ROOTS | {namespace.partition(".")[0].encode()})
        if names is None:
            self.thorough = True
            return
        self.all = False
        self.warm |= names
        if names <= _ALWAYS:
            # Without an engine there are arrays by annotation only, and of a backend no more to find than branches on
            # its name: what is taken from it by a dot is nothing to any rule of a frontend's.
            if frontend and ast.FunctionDef not in checks.on:
                self.warm |= _ANNOTATED
                names = (names - {b"backend"}) | _ANNOTATED
                self._undotted = b"backend" in data
        elif checks.subject == HOST_VALUES and self._tensors and not self.thorough:
            # What is made of tensors is a tensor, until one of these words makes a host value of it.
            self.host = True
            names = (names - self._tensors) | _TO_HOST
        self._words = tuple([word(name) for name in names if name in data])

    def note(self, name: str, value: Value) -> None:
        """Take in that a name stands for an array, for something of an engine's, or for an object of a class."""
        if self._fixed or (self.host and (value.kind == TENSOR or (value.kind == REFERENCE and _is_tensors(value)))):
            return
        self.fresh.add(name)

    def _imported(self, roots: Iterable[bytes]) -> set[bytes] | None:
        """The names that make a function worth a visit; ``None`` if all of it is."""
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

    def touches(self, node: Any) -> bool:
        """Whether the lines of a node mention a name that the file's imports make interesting."""
        if self.all:
            return True
        known = self._touched.get(node)
        if known is None:
            source = self.source
            starts = source.starts
            start, end = starts[node.lineno - 1], starts[node.end_lineno]
            known = source.holds(self._words, start, end)
            if self._undotted and not known:
                known = any(source.data[place + 7 : place + 8] != b"." for place in source.places(_BACKEND, start, end))
            self._touched[node] = known
        return known

    def mentions(self, node: Any, words: Iterable[Word]) -> bool:
        """Whether the lines of a node mention one of some names."""
        starts = self.source.starts
        return self.source.holds(words, starts[node.lineno - 1], starts[node.end_lineno])

    def is_warm(self, node: Any) -> bool:
        """Whether the lines of a node mention anything that a rule could fire on: what is cold need not be visited."""
        if self.thorough:
            return True
        source = self.source
        starts, spaced, warm = source.starts, source.spaced, self.warm
        first, last = node.lineno, node.end_lineno
        start, end = starts[first - 1], starts[first]
        if not warm.isdisjoint(spaced[start : end + 1].split()):
            return True
        if first != last:
            # What is long is mostly numbers, and what is warm in it is mostly in the first line.
            second, end = end, starts[last]
            if not warm.isdisjoint(spaced[second : end + 1].split()):
                return True
        return b":=" in source.data[start:end]
