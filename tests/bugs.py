"""Bugs to plant in a source file, each one edit of a few bytes: what ``tests/mutants.py`` draws its sample from.

Places are found in the syntax tree and edited in the bytes of the file, so that everything else stays as it is. The
kinds, each with an example:

========== =====================================================================================================
operator   ``a + b`` becomes ``a - b``; ``a and b`` becomes ``a or b``
boundary   ``a < b`` becomes ``a <= b``
comparison ``a == b`` becomes ``a != b``; ``a in b`` becomes ``a not in b``
condition  ``if a:`` becomes ``if True:``; in ``a and b``, one of them becomes ``True``; ``not a`` becomes ``a``
constant   ``3`` becomes ``4`` or ``2``; ``0.5`` becomes ``1.0``; ``True`` becomes ``False``
default    the same for the default of a parameter or a field
axis       ``axis=-1`` becomes ``axis=0``
dtype      ``"float32"`` becomes ``"float64"``
sign       ``-a`` becomes ``a``
argument   ``f(a, axis=b)`` becomes ``f(a)``
error      ``raise ValueError`` becomes ``raise TypeError``; ``except KeyError`` becomes ``except ZeroDivisionError``
statement  a call whose result is not used, an assignment to an attribute or element, a ``raise``, ``continue`` or
           ``break`` becomes ``pass``
========== =====================================================================================================

No bug is planted where it would be none: in docstrings, annotations and type aliases, ``__all__``, ``if
TYPE_CHECKING`` and ``if __name__ == "__main__"`` blocks, assertions, ``__repr__`` and the like, and in the text of
errors and warnings: the arguments of a ``raise``, what is only computed for them, and private functions that nothing
else calls. Options that only change how fast or how legible something is (``COSMETIC``) are left alone as well.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect
from collections.abc import Callable, Iterator
from typing import NamedTuple

KINDS = (
    "operator",
    "boundary",
    "comparison",
    "condition",
    "constant",
    "default",
    "axis",
    "dtype",
    "sign",
    "argument",
    "error",
    "statement",
)

BINARY: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "/"),
    ast.Mod: ("%", "//"),
    ast.Pow: ("**", "*"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.BitXor: ("^", "|"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
}
COMPARED: dict[type[ast.cmpop], tuple[str, str, str]] = {
    ast.Lt: ("<", "<=", "boundary"),
    ast.LtE: ("<=", "<", "boundary"),
    ast.Gt: (">", ">=", "boundary"),
    ast.GtE: (">=", ">", "boundary"),
    ast.Eq: ("==", "!=", "comparison"),
    ast.NotEq: ("!=", "==", "comparison"),
    ast.Is: ("is", "is not", "comparison"),
    ast.IsNot: (r"is\s+not", "is", "comparison"),
    ast.In: ("in", "not in", "comparison"),
    ast.NotIn: (r"not\s+in", "in", "comparison"),
}
DTYPES = {
    "float16": "float32",
    "bfloat16": "float32",
    "float32": "float64",
    "float64": "float32",
    "int8": "int16",
    "int16": "int32",
    "int32": "int64",
    "int64": "int32",
    "uint8": "uint16",
    "uint16": "uint32",
    "uint32": "uint64",
    "uint64": "uint32",
    "complex64": "complex128",
    "complex128": "complex64",
}
RAISED = {"ValueError": "TypeError", "RuntimeError": "ValueError", "NotImplementedError": "TypeError"}
CONTROL = {"StopIteration", "SystemExit", "KeyboardInterrupt", "GeneratorExit", "AssertionError"}
AXES = {"axis", "axes", "dim"}
SHOWN = {"__repr__", "__str__", "_repr_html_", "_repr_pretty_", "__rich__"}
# Options of calls that change no result: how an iteration is checked, what help says, where a warning points.
COSMETIC = {"strict", "encoding", "stacklevel", "help", "metavar", "description", "epilog", "prog", "type_params"}
# Calls whose arguments are for people or for type checkers.
TOLD = {"warn", "add_note", "cast", "TypeVar", "ParamSpec", "NewType", "debug", "info", "warning", "exception"}
DECORATORS = {"dataclass", "lru_cache", "wraps", "overload", "deprecated"}

MODULE = "<module>"


class Bug(NamedTuple):
    """One edit: the bytes from ``start`` to ``end`` of a file become ``text``."""

    path: str
    kind: str
    start: int
    end: int
    text: str
    line: int
    function: str
    """Qualified name of the function or class around it, or ``<module>``."""
    unit: str
    """What it belongs to at the top of the file: a definition, the key of a table, or the name that is assigned to."""

    def planted(self, source: bytes) -> bytes:
        """The file with the bug in it."""
        return source[: self.start] + self.text.encode() + source[self.end :]

    def lines(self, source: bytes) -> tuple[str, str]:
        """The lines that it changes, before and after, each as one line."""
        first = source.rfind(b"\n", 0, self.start) + 1
        last = source.find(b"\n", self.end)
        last = len(source) if last < 0 else last
        after = source[first : self.start] + self.text.encode() + source[self.end : last]
        return " ".join(source[first:last].decode().split()), " ".join(after.decode().split())


def bugs_in(path: str, source: bytes) -> list[Bug]:
    """Every bug that can be planted in a file, in the order of the file; ``is_one`` says whether it compiles."""
    found = set(_Finder(path, source, ast.parse(source)).found)
    return sorted(found, key=lambda bug: (bug.start, bug.end, bug.text))


def is_one(bug: Bug, source: bytes) -> bool:
    """Whether the file compiles with the bug in it, and is another program."""
    try:
        tree = ast.parse(bug.planted(source))
        compile(tree, bug.path, "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return ast.dump(tree) != ast.dump(ast.parse(source))


def units(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """The parts at the top of a file by name: definitions, entries of tables with a string for a key, assignments."""
    for statement in tree.body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield statement.name, statement
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
            target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
            name = target.id if isinstance(target, ast.Name) else MODULE
            value = statement.value
            if isinstance(value, ast.Dict):
                for key, entry in zip(value.keys, value.values, strict=True):
                    keyed = key.value if isinstance(key, ast.Constant) else None
                    yield keyed if isinstance(keyed, str) else name, entry
            else:
                yield name, statement
        else:
            yield MODULE, statement


def names(node: ast.AST) -> set[str]:
    """The names that are read in a part of a file."""
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load)}


class _Finder(ast.NodeVisitor):
    """Collects the edits of one file."""

    def __init__(self, path: str, source: bytes, tree: ast.Module) -> None:
        self.path, self.source = path, source
        self.starts = [0]
        for line in source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.found: list[Bug] = []
        self.scope: list[str] = []
        self.unit = MODULE
        self.silent = _messages(tree)
        for name, part in units(tree):
            self.unit = name
            self.visit(part)

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Where a node is, in bytes."""
        return (
            self.starts[node.lineno - 1] + node.col_offset,  # type: ignore[attr-defined]
            self.starts[node.end_lineno - 1] + node.end_col_offset,  # type: ignore[attr-defined]
        )

    def add(self, kind: str, start: int, end: int, text: str) -> None:
        line = bisect(self.starts, start)
        function = ".".join(self.scope) or MODULE
        self.found.append(Bug(self.path, kind, start, end, text, line, function, self.unit))

    def replace(self, kind: str, node: ast.AST, text: str) -> None:
        self.add(kind, *self.span(node), text)

    def between(self, kind: str, left: ast.AST, right: ast.AST, sign: str, text: str) -> None:
        """Replace the operator between two operands."""
        start, end = self.span(left)[1], self.span(right)[0]
        gap = re.sub(rb"#[^\n]*", lambda comment: b" " * len(comment[0]), self.source[start:end])
        match = re.search(sign.encode(), gap)
        if match:
            self.add(kind, start + match.start(), start + match.end(), text)

    def visit(self, node: ast.AST) -> None:
        if node not in self.silent:
            super().visit(node)

    def several(self, nodes: list[ast.AST]) -> None:
        for node in nodes:
            self.visit(node)

    # Definitions

    def _define(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        marks = {_last_name(mark) for mark in node.decorator_list}
        if node.name in SHOWN or "overload" in marks:
            return
        self.scope.append(node.name)
        self.several([mark for mark in node.decorator_list if _last_name(mark) not in DECORATORS])
        if isinstance(node, ast.ClassDef):
            for statement in node.body:
                if isinstance(statement, ast.AnnAssign) and statement.value is not None:
                    self._default(statement.value)
        else:
            self._defaults(node.args)
        self.several(list(node.body))
        self.scope.pop()

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _define  # noqa: N815

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._defaults(node.args)
        self.visit(node.body)

    def _defaults(self, arguments: ast.arguments) -> None:
        for default in (*arguments.defaults, *filter(None, arguments.kw_defaults)):
            self._default(default)
            self.visit(default)

    def _default(self, node: ast.expr) -> None:
        """Change the default of a parameter or field, in place of what it would be elsewhere."""
        inner = node.operand if isinstance(node, ast.UnaryOp) else node
        if isinstance(inner, ast.Constant) and isinstance(inner.value, (bool, int, float)):
            for text in _other_values(inner.value):
                self.replace("default", inner, text)
            self.silent.add(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None and "TypeAlias" not in names(node.annotation):
            self._assigned(node, [node.target])
            self.visit(node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        if any(isinstance(target, ast.Name) and target.id in ("__all__", "__slots__") for target in node.targets):
            return
        self._assigned(node, node.targets)
        self.generic_visit(node)

    def _assigned(self, node: ast.stmt, targets: list[ast.expr]) -> None:
        making = self.scope[-1:] == ["__init__"] and all(isinstance(target, ast.Attribute) for target in targets)
        if not making and all(isinstance(target, (ast.Attribute, ast.Subscript)) for target in targets):
            self.replace("statement", node, "pass")

    # Statements

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, (ast.Call, ast.Await)):
            self.replace("statement", node, "pass")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.replace("statement", node, "pass")
        sign, other = BINARY.get(type(node.op), ("", ""))
        if sign and not _is_text(node.value):
            self.between("operator", node.target, node.value, re.escape(sign) + "=", f"{other}=")
        self.generic_visit(node)

    def visit_Delete(self, node: ast.Delete) -> None:
        self.replace("statement", node, "pass")

    def visit_Continue(self, node: ast.Continue) -> None:
        self.replace("statement", node, "pass")

    def visit_Break(self, node: ast.Break) -> None:
        self.replace("statement", node, "pass")

    def visit_Raise(self, node: ast.Raise) -> None:
        raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        name = _last_name(raised) if raised is not None else ""
        if name in CONTROL:
            return
        self.replace("statement", node, "pass")
        if name.endswith("Error") and isinstance(raised, (ast.Name, ast.Attribute)):
            self.replace("error", raised, RAISED.get(name, "ValueError" if name == "TypeError" else "RuntimeError"))

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        caught = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
        for one in caught:
            if isinstance(one, (ast.Name, ast.Attribute)):
                self.replace("error", one, "ZeroDivisionError")
        self.several(list(node.body))

    def visit_Assert(self, node: ast.Assert) -> None:
        """Nothing: assertions in the library are for type checkers."""

    def visit_If(self, node: ast.If) -> None:
        if "TYPE_CHECKING" in ast.unparse(node.test) or "__main__" in ast.unparse(node.test):
            self.several(list(node.orelse))
            return
        self._tested(node.test, "True", "False")
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._tested(node.test, "True", "False")
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        if not isinstance(node.test, ast.Constant):
            self._tested(node.test, "False")
            self.generic_visit(node)
        else:
            self.several(list(node.body))

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self._tested(test, "True")
        self.generic_visit(node)

    def _tested(self, test: ast.expr, *texts: str) -> None:
        if not any(isinstance(inner, ast.NamedExpr) for inner in ast.walk(test)):
            for text in texts:
                self.replace("condition", test, text)

    # Expressions

    def visit_BinOp(self, node: ast.BinOp) -> None:
        sign, other = BINARY.get(type(node.op), ("", ""))
        if sign and not _is_text(node.left) and not _is_text(node.right) and not _is_type(node):
            self.between("operator", node.left, node.right, re.escape(sign), other)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        sign, other = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            self.between("operator", left, right, sign, other)
        for value in node.values:
            self._tested(value, "True" if sign == "and" else "False")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        start, end = self.span(node)[0], self.span(node.operand)[0]
        if isinstance(node.op, ast.USub):
            joined = self.source[start - 1 : start].isalnum()
            self.add("sign", start, start + 1, " " if joined else "")
        elif isinstance(node.op, ast.Not):
            blank = not self.source[start + 3 : end].strip()
            self.add("condition", start, end if blank else start + 3, "")
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        for op, left, right in zip(node.ops, operands, operands[1:], strict=False):
            sign, other, kind = COMPARED[type(op)]
            self.between(kind, left, right, sign, other)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = _last_name(node.func)
        if name in TOLD:
            return
        arguments = sorted([*node.args, *node.keywords], key=self.span)
        for position, argument in enumerate(arguments):
            if isinstance(argument, ast.keyword) and argument.arg and argument.arg not in COSMETIC:
                self._left_out(arguments, position)
        self.visit(node.func)
        self.several(list(node.args[:1] if name in ("isinstance", "issubclass") else node.args))
        self.several([keyword for keyword in node.keywords if keyword.arg not in COSMETIC])

    def _left_out(self, arguments: list[ast.AST], position: int) -> None:
        start, end = self.span(arguments[position])
        if position:
            start = self.span(arguments[position - 1])[1]
        elif len(arguments) > 1:
            end = self.span(arguments[1])[0]
        self.add("argument", start, end, "")

    def visit_keyword(self, node: ast.keyword) -> None:
        value = node.value.operand if isinstance(node.value, ast.UnaryOp) else node.value
        if node.arg in AXES and isinstance(value, ast.Constant) and type(value.value) is int:
            number = -value.value if value is not node.value else value.value
            self.replace("axis", node.value, {0: "1", -2: "-1"}.get(number, "0"))
        else:
            self.visit(node.value)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, (bool, int, float)):
            for text in _other_values(node.value):
                self.replace("constant", node, text)
        elif isinstance(node.value, str) and node.value in DTYPES:
            self.replace("dtype", node, f'"{DTYPES[node.value]}"')

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if node.attr in DTYPES and isinstance(node.value, ast.Name):
            self.replace("dtype", node, f"{node.value.id}.{DTYPES[node.attr]}")
        self.visit(node.value)


def _other_values(value: bool | int | float) -> list[str]:
    if isinstance(value, bool):
        return [str(not value)]
    if isinstance(value, int):
        return [str(value + 1), *([str(value - 1)] if value > 0 else [])]
    # A small number is a tolerance, of which twice as much would hardly be a mistake.
    return ["1.0"] if value == 0 else [repr(value * (2.0 if abs(value) >= 0.01 else 1000.0))]


def _last_name(node: ast.AST) -> str:
    """``c`` of ``a.b.c`` and of ``a.b.c(...)``; empty for anything else."""
    if isinstance(node, ast.Call):
        node = node.func
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_text(node: ast.expr) -> bool:
    """Whether an operand is written out as a string, list or tuple, with which another operator would not work."""
    return isinstance(node, (ast.JoinedStr, ast.List, ast.Tuple, ast.ListComp)) or (
        isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))
    )


def _is_type(node: ast.BinOp) -> bool:
    """Whether ``a | b`` is a union of types."""
    sides = (node.left, node.right)
    return isinstance(node.op, ast.BitOr) and any(
        (isinstance(side, ast.Constant) and side.value is None)
        or isinstance(side, ast.Subscript)
        or _last_name(side) in {"int", "float", "complex", "bool", "str", "bytes", "list", "tuple", "dict", "set"}
        or (_last_name(side)[:1].isupper() and not _last_name(side).isupper())
        for side in sides
    )


def _messages(tree: ast.Module) -> set[ast.AST]:
    """The parts of a file that only say what is wrong."""
    found: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise):
            found.update(_argument_nodes(node))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found.update(_texts(node))
    helpers = {
        node.name: node
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("_") and not node.name.startswith("__")
    }
    while True:
        raised = {inner for node in found for inner in ast.walk(node)}
        read = {
            node.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and node not in raised and node.id in helpers
        }
        mentioned = {node.id for node in raised if isinstance(node, ast.Name)}
        fresh = [helper for name, helper in helpers.items() if name not in read and name in mentioned]
        if all(helper in found for helper in fresh):
            return found
        found.update(fresh)


def _argument_nodes(node: ast.Raise) -> list[ast.AST]:
    return [*node.exc.args, *node.exc.keywords] if isinstance(node.exc, ast.Call) else []


def _texts(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.AST]:
    """Values of variables that nothing but a ``raise`` reads."""
    inside: Callable[[ast.AST], set[ast.AST]] = lambda node: set(ast.walk(node))  # noqa: E731
    raised = {inner for node in ast.walk(function) if isinstance(node, ast.Raise) for inner in inside(node)}
    loads = [node for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    only = {node.id for node in loads if node in raised} - {node.id for node in loads if node not in raised}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and all(isinstance(t, ast.Name) and t.id in only for t in node.targets):
            yield node.value
