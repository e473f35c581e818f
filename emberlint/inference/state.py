"""State of the pass over a file, which rules do not use."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from emberlint.inference.checks import NONE, Checks
from emberlint.inference.file import File
from emberlint.inference.interest import Interest
from emberlint.inference.scopes import Body, Class, Functions
from emberlint.inference.values import Value

if TYPE_CHECKING:
    from emberlint.config import Config
    from emberlint.source.text import Source


class State(File):
    """A file, and the state of the pass over it, which visitors read and write.

    ``checks`` are the checks of the rules, ``interest`` says which nodes are relevant. ``classes`` and ``functions``
    are those of the file. ``returns`` are the values that the function being visited returns, ``pending`` the inner
    functions to visit after it. ``ended`` says that the rest of the block is unreachable. ``lenient`` says that an
    attribute is taken for an array if one of the values that are assigned to it is one and the others are not known.
    """

    __slots__ = ("checks", "classes", "ended", "functions", "interest", "lenient", "pending", "returns")

    def __init__(
        self,
        source: Source,
        tree: ast.Module,
        config: Config,
        checks: Checks = NONE,
        *,
        module: str = "",
        package: str = "",
        where: str = "",
        engines: frozenset[str] | None = None,
        thorough: bool = False,
        lenient: bool = False,
    ) -> None:
        super().__init__(source, tree, config, module=module, package=package, where=where, engines=engines)
        self.checks = checks
        self.interest = Interest(source, thorough)
        self.classes: dict[ast.AST | None, Class] = {}
        self.functions = Functions()
        self.returns: list[Value | None] = []
        self.ended = False
        self.lenient = lenient
        self.pending: list[Body] = []


def state_of(file: File) -> State:
    """State of the pass over a file."""
    assert isinstance(file, State)
    return file
