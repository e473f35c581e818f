"""The state of the pass over a file, which rules do not see."""

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
    """A file, and the state of the pass over it: what the visitors of nodes read and write.

    ``checks`` are those of the rules, ``interest`` says what is worth a visit. ``classes`` and ``functions`` hold what
    is known of those of the file. ``returns`` and ``pending`` are what the function being visited has returned, and the
    functions in it that are to be visited after it; ``ended`` says that what follows in this block is not reached.
    """

    __slots__ = ("checks", "classes", "ended", "functions", "interest", "pending", "returns")

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
    ) -> None:
        super().__init__(source, tree, config, module=module, package=package, where=where, engines=engines)
        self.checks = checks
        self.interest = Interest(source, thorough)
        self.classes: dict[ast.AST | None, Class] = {}
        self.functions = Functions()
        self.returns: list[Value | None] = []
        self.ended = False
        self.pending: list[Body] = []


def state_of(file: File) -> State:
    """The state of the pass that shows a file to the rules."""
    assert isinstance(file, State)
    return file
