"""Signatures of engine functions as written in the frontend, and comparison of two signatures."""

from __future__ import annotations

import ast

from ember_ml import backend as backends
from ember_ml.tools.migration import source
from ember_ml.tools.migration.source import Module, alias_text
from ember_ml.tools.migration.survey import Function, Survey


class SignatureError(Exception):
    """A signature that cannot be written in the frontend."""


class Signature:
    """Signature of a function, written without names of its engine."""

    def __init__(self, survey: Survey, module: Module, function: Function) -> None:
        self.survey, self.module, self.function = survey, module, function
        self.engine_names = set()
        self.imports: dict[str, str] = {}
        roots = {home.engine for home in backends.homes().values()}
        for piece in module.pieces:
            for node in ast.walk(piece.node):
                if isinstance(node, ast.Import):
                    for alias in node.names:
                        if alias.name.partition(".")[0] in roots:
                            self.engine_names.add(alias.asname or alias.name.partition(".")[0])
                elif isinstance(node, ast.ImportFrom):
                    for alias in node.names:
                        bound = alias.asname or alias.name
                        if (node.module or "").partition(".")[0] in roots:
                            self.engine_names.add(bound)
                        elif node.module in ("typing", "collections.abc"):
                            self.imports[bound] = f"from {node.module} import {alias_text(alias.name, alias.asname)}"

    def text(self, needed: list[str]) -> str:
        """Parameters with annotations and defaults that are valid in the frontend; imports are added to ``needed``."""
        a = self.function.args
        plain = [*a.posonlyargs, *a.args]
        defaults: list[ast.expr | None] = [*[None] * (len(plain) - len(a.defaults)), *a.defaults]
        parts = []
        for i, (argument, default) in enumerate(zip(plain, defaults, strict=True)):
            parts.append(self._one(argument, default, needed))
            if i + 1 == len(a.posonlyargs):
                parts.append("/")
        if a.vararg is not None:
            parts.append("*" + self._one(a.vararg, None, needed))
        elif a.kwonlyargs:
            parts.append("*")
        parts += [self._one(b, default, needed) for b, default in zip(a.kwonlyargs, a.kw_defaults, strict=True)]
        if a.kwarg is not None:
            parts.append("**" + self._one(a.kwarg, None, needed))
        return ", ".join(parts)

    def _one(self, argument: ast.arg, default: ast.expr | None, needed: list[str]) -> str:
        annotation = self._annotation(argument.annotation, "TensorLike", needed)
        shown = argument.arg + (f": {annotation}" if annotation else "")
        if default is None:
            return shown
        return shown + (" = " if annotation else "=") + self.default(argument.arg, default)

    def default(self, name: str, value: ast.expr) -> str:
        """Default value as a literal."""
        if isinstance(value, ast.Name):
            named = [p.node for p in self.module.pieces if isinstance(p.node, ast.Assign) and p.binds == {value.id}]
            value = named[0].value if named else value
        try:
            return repr(ast.literal_eval(value))
        except (ValueError, TypeError):
            shown = ast.unparse(value)
            raise SignatureError(
                f"the default of {name} must be one that the frontend can name, got {shown} in {self.module.name}"
            ) from None

    def returns(self, needed: list[str]) -> str:
        """Annotation of the result, with its arrow; empty if there is none."""
        annotation = self._annotation(self.function.returns, "Tensor", needed)
        return f" -> {annotation}" if annotation else ""

    def _annotation(self, annotation: ast.expr | None, tensor: str, needed: list[str]) -> str:
        if annotation is None:
            return ""
        names = set(source.used(annotation))
        if names & self.engine_names:
            needed.append(f"from ember_ml.types import {tensor}")
            return tensor
        known = {"int", "float", "bool", "complex", "str", "tuple", "list", "dict", "object", "None", "bytes", "set"}
        if not names <= known | set(self.imports):
            return ""
        needed += [self.imports[name] for name in sorted(names & set(self.imports))]
        return ast.unparse(annotation) if not isinstance(annotation, ast.Constant) else str(annotation.value)

    def forwarded(self) -> str:
        """Arguments of the call that forwards all parameters."""
        a = self.function.args
        parts = [argument.arg for argument in [*a.posonlyargs, *a.args]]
        if a.vararg is not None:
            parts.append(f"*{a.vararg.arg}")
        parts += [f"{argument.arg}={argument.arg}" for argument in a.kwonlyargs]
        if a.kwarg is not None:
            parts.append(f"**{a.kwarg.arg}")
        return ", ".join(parts)


def compared(survey: Survey, here: Module, reference: Function, there: Module, function: Function) -> tuple[str, str]:
    """Reason why a function cannot be called like the reference, and harmless differences; each may be empty."""
    ours, theirs = Signature(survey, here, reference), Signature(survey, there, function)
    a, b = reference.args, function.args
    mine, other = [*a.posonlyargs, *a.args], [*b.posonlyargs, *b.args]
    where = f"{there.name}.{function.name}"
    if len(other) < len(mine) and b.vararg is None:
        return f"{where} takes {len(other)} arguments, {here.name} {len(mine)}", ""
    if len(other) > len(mine) and len(other) - len(b.defaults) > len(mine):
        return f"{where} needs {other[len(mine)].arg}, which {here.name} does not have", ""
    if (a.vararg is None) != (b.vararg is None) or (a.kwarg is not None and b.kwarg is None):
        return f"{where} takes other arguments than {here.name}", ""
    try:
        first = {
            x.arg: ours.default(x.arg, d) for x, d in zip(mine[len(mine) - len(a.defaults) :], a.defaults, strict=True)
        }
        second = {
            x.arg: theirs.default(x.arg, d)
            for x, d in zip(other[len(other) - len(b.defaults) :], b.defaults, strict=True)
        }
    except SignatureError as error:
        return str(error), ""
    for x, y in zip(mine, other, strict=False):
        if x.arg in first and y.arg in second and first[x.arg] != second[y.arg]:
            return f"{y.arg} is {second[y.arg]} by default in {where}, {first[x.arg]} in {here.name}", ""
    lacking = [x.arg for x in a.kwonlyargs if x.arg not in {y.arg for y in b.kwonlyargs}]
    if lacking and b.kwarg is None:
        return f"{where} does not take {lacking[0]}=", ""
    renamed = [f"{y.arg} is {x.arg} in the frontend" for x, y in zip(mine, other, strict=False) if x.arg != y.arg]
    further = [y.arg for y in other[len(mine) :]]
    renamed += [f"the frontend does not offer {name}" for name in further]
    return "", ", ".join(renamed)
