"""``python -m emberlint.generate``: write ``catalogue.json`` from ember's registry and the installed engines.

The linter imports neither. It reads names, parameters and return types of the operations and of the engines' functions
from this file. A test fails when the file is out of date.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
import sys
import typing
from pathlib import Path
from typing import Any

from emberlint.knowledge.catalogue import PATH

# Namespaces of each engine whose functions are in the catalogue.
NAMESPACES = {
    "numpy": ("numpy", "numpy.linalg", "numpy.fft", "numpy.random", "numpy.lib.stride_tricks"),
    "torch": ("torch", "torch.linalg", "torch.fft", "torch.special", "torch.nn.functional", "torch.nn.init"),
    "mlx": ("mlx.core", "mlx.core.linalg", "mlx.core.fft", "mlx.core.random", "mlx.core.fast", "mlx.nn"),
    "jax": (
        "jax.numpy",
        "jax.numpy.linalg",
        "jax.numpy.fft",
        "jax.nn",
        "jax.lax",
        "jax.scipy.special",
        "jax.random",
    ),
}
# Array type of each engine. ``jax.Array`` is abstract and lacks some methods, so there it is the type of a result.
_ARRAYS = {
    "numpy": ("numpy", "ndarray"),
    "torch": ("torch", "Tensor"),
    "mlx": ("mlx.core", "array"),
    "jax": ("jax.numpy", "zeros"),
}
_CODES = {
    inspect.Parameter.POSITIONAL_ONLY: "P",
    inspect.Parameter.POSITIONAL_OR_KEYWORD: "B",
    inspect.Parameter.VAR_POSITIONAL: "V",
    inspect.Parameter.KEYWORD_ONLY: "K",
    inspect.Parameter.VAR_KEYWORD: "W",
}
_HEAD = re.compile(r"\s*[\w.]+\((.*?)\)\s*->\s*([^\n]+)", re.DOTALL)
_HEADS = re.compile(r"^(?:\.\. function:: *)?([\w.]+)\(([^`\n]*?)\)(?: *->[^\n]+)?[ \t]*$", re.MULTILINE)
_ROLE = re.compile(r"\b(?:Bool)?(TensorLike|Indices|Mask|DTypeLike|DeviceLike)\b")


def catalogue() -> dict[str, Any]:
    """The complete catalogue."""
    return {"ember": ember(), "engines": engines(), "standard": standard()}


def ember() -> dict[str, Any]:
    """Ember's operations, dtypes and constants, and their names and aliases."""
    ops = importlib.import_module("ember_ml.ops")
    from ember_ml.dispatch import REGISTRY, operation_of
    from ember_ml.dtypes import DTYPES

    functions: dict[str, Any] = {}
    for operation in REGISTRY.values():
        functions[f"{operation.category}.{operation.name}"] = {
            "returns": str(operation.call.__annotations__.get("return", "")),
            "dtype_rule": operation.rule.name,
            "lazy": operation.lazy,
            "parameters": _parameters(inspect.signature(operation.call), roles=True),
        }
    names = {}
    for name, value in vars(ops).items():
        if hasattr(value, "__operation__"):
            operation = operation_of(value)
            names[name] = f"{operation.category}.{operation.name}"
    aliases = {}
    for category in sorted({operation.category for operation in REGISTRY.values()}):
        module = sys.modules[f"ember_ml.ops.{category}"]
        for name, value in vars(module).items():
            if hasattr(value, "__operation__") and not name.startswith("_"):
                operation = operation_of(value)
                full = f"{operation.category}.{operation.name}"
                if full != f"{category}.{name}":
                    aliases[f"{category}.{name}"] = full
    constants = sorted(name for name in ops.__all__ if isinstance(getattr(ops, name), (int, float, type(None))))
    spaces = sorted(name for name in ops.__all__ if inspect.ismodule(getattr(ops, name)))
    return {
        "operations": dict(sorted(functions.items())),
        "names": dict(sorted(names.items())),
        "aliases": dict(sorted(aliases.items())),
        "dtypes": sorted(DTYPES),
        "constants": constants,
        "namespaces": {name: getattr(ops, name).__name__.rpartition(".")[2] for name in spaces},
    }


def engines() -> dict[str, Any]:
    """Functions of the engines: their parameters, and their return annotation or documented return type."""
    found: dict[str, Any] = {}
    for engine, namespaces in NAMESPACES.items():
        found[engine] = {"version": _version(engine), "methods": methods(engine), "functions": {}}
        for namespace in namespaces:
            module = importlib.import_module(namespace)
            for name in sorted(vars(module) if engine != "numpy" else dir(module)):
                if name.startswith("_"):
                    continue
                try:
                    value = getattr(module, name)
                except AttributeError:
                    continue
                if callable(value) and not inspect.isclass(value) and not _is_alias(value):
                    found[engine]["functions"][f"{namespace}.{name}"] = _describe(value)
    return found


def methods(engine: str) -> list[str]:
    """Methods and properties of an engine's arrays."""
    place, name = _ARRAYS[engine]
    array = getattr(importlib.import_module(place), name)
    if not inspect.isclass(array):
        array = type(array(()))
    return sorted(name for name in dir(array) if not name.startswith("_"))


def _is_alias(value: object) -> bool:
    """Whether a callable is a type for annotations, such as ``jax.lax.PrecisionLike``."""
    return typing.get_origin(value) is not None


def _version(engine: str) -> str:
    from importlib import metadata

    return metadata.version(engine)


def standard() -> list[str]:
    """Functions of the array API standard, as ``array_api_strict`` exports them."""
    strict = importlib.import_module("array_api_strict")
    return sorted(
        name
        for name in strict.__all__
        if callable(getattr(strict, name)) and not inspect.isclass(getattr(strict, name))
    )


def _describe(function: Any) -> dict[str, Any]:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        match = _HEAD.match(inspect.getdoc(function) or "")
        heads = [match[1]] if match is not None else []
        heads += documented_heads(function, getattr(function, "__name__", ""))
        found: dict[str, Any] = {"returns": match[2].strip()} if match is not None else {}
        return {**found, **({"parameters": _longest(list(map(documented_parameters, heads)))} if heads else {})}
    described: dict[str, Any] = {"parameters": _parameters(signature)}
    if signature.return_annotation is not signature.empty:
        annotation = signature.return_annotation
        described["returns"] = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return described


def _parameters(signature: inspect.Signature, roles: bool = False) -> list[list[str | None]]:
    return [
        [parameter.name, _CODES[parameter.kind], _default(parameter.default), *([_role(parameter)] if roles else [])]
        for parameter in signature.parameters.values()
    ]


def _default(value: object) -> str | None:
    if value is inspect.Parameter.empty:
        return None
    text = repr(value)
    return "..." if " object at 0x" in text or text.startswith("<") else text


def _role(parameter: inspect.Parameter) -> str:
    match = _ROLE.search(str(parameter.annotation))
    return match[1] if match else ""


def documented_parameters(text: str) -> list[list[str | None]]:
    """Parameters from a signature in a docstring."""
    found: list[list[str | None]] = []
    keyword = False
    for part in _split(text):
        part = part.strip()
        if part == "/":
            for parameter in found:
                parameter[1] = "P"
            continue
        if part == "*":
            keyword = True
            continue
        name, _, default = (piece.strip() for piece in part.partition("="))
        name, _, annotation = (piece.strip() for piece in name.partition(":"))
        default = default or ("None" if annotation.startswith("Optional[") else "")
        if name.startswith("*"):
            found.append([name.lstrip("*"), "W" if name.startswith("**") else "V", None])
            keyword = True
        elif name.isidentifier():
            found.append([name, "K" if keyword else "B", default or None])
    return found


def documented_heads(function: object, name: str) -> list[str]:
    """Parameters of each call of a function that its docstring describes: those of torch often describe several."""
    text = inspect.getdoc(function) or ""
    return [found[2] for found in _HEADS.finditer(text) if found[1].rpartition(".")[2] == name]


def _longest(calls: list[list[list[str | None]]]) -> list[list[str | None]]:
    """The call of the most parameters; those that another call lacks have a default."""
    found = max(calls, key=len)
    shorter = [{str(row[0]) for row in call} for call in calls if call and call[0][0] == found[0][0]]
    required = set.intersection(*shorter) if shorter else set()
    for row in found:
        if row[0] not in required and row[1] in ("P", "B", "K") and row[2] is None:
            row[2] = "None"
    return found


def _split(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for i, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [*parts, text[start:]]


def render(table: dict[str, Any]) -> str:
    """Text of the file: one entry per line, so that diffs are readable."""
    ember = table["ember"]
    lines = ['{"ember": {', '"operations": {', _rows(ember["operations"]), "},"]
    for key in ("names", "aliases", "dtypes", "constants", "namespaces"):
        lines.append(f'"{key}": {json.dumps(ember[key])}{"," if key != "namespaces" else ""}')
    lines.append('}, "engines": {')
    for i, (engine, part) in enumerate(table["engines"].items()):
        lines += [f'"{engine}": {{"version": "{part["version"]}", "methods": {json.dumps(part["methods"])},']
        lines += ['"functions": {', _rows(part["functions"])]
        lines.append("}}," if i < len(table["engines"]) - 1 else "}}")
    lines.append(f'}}, "standard": {json.dumps(table["standard"])}}}')
    return "\n".join(lines) + "\n"


def _rows(table: dict[str, Any]) -> str:
    return ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in table.items())


def stale(table: dict[str, Any]) -> list[str]:
    """Parts of the file that differ from the table.

    An engine is compared only if the installed version is that of the file.
    """
    held = json.loads(Path(PATH).read_text(encoding="utf-8"))
    found = [f"ember: {key}" for key in table["ember"] if table["ember"][key] != held["ember"].get(key)]
    for engine, part in table["engines"].items():
        old = held["engines"].get(engine, {})
        if part["version"] == old.get("version") and part != old:
            found.append(engine)
    return found


def main() -> int:
    """Write the file; with ``--check``, only print the parts that are out of date."""
    table = catalogue()
    if "--check" not in sys.argv[1:]:
        Path(PATH).write_text(render(table), encoding="utf-8")
        return 0
    for part in stale(table):
        print(f"{PATH} is not current: {part}")
    return 1 if stale(table) else 0


if __name__ == "__main__":
    sys.exit(main())
