"""Table of the layers of a model."""

from __future__ import annotations

import math
from collections.abc import Callable
from html import escape
from typing import Any, NamedTuple

from ember_ml import ops, tree
from ember_ml.backend import use_backend
from ember_ml.dtypes import as_dtype
from ember_ml.nn.modules.module import Module


class Row(NamedTuple):
    """A layer: its path, class, output shape (empty if it was not called), and numbers of its own parameters."""

    path: str
    kind: str
    shape: str
    trainable: int
    frozen: int


class Summary:
    """Result of ``Module.summary``: ``rows``, totals, and a table when it is printed."""

    def __init__(self, title: str, rows: list[Row], size: int) -> None:
        self.title, self.rows, self.size = title, rows, size
        self.trainable = sum(row.trainable for row in rows)
        self.frozen = sum(row.frozen for row in rows)

    @property
    def total(self) -> int:
        """Number of parameters."""
        return self.trainable + self.frozen

    def __rich__(self) -> Any:
        from rich.console import Group  # slow to import, and needed only to show a table
        from rich.table import Table

        table = Table(title=self.title, title_justify="left")
        table.add_column("path", overflow="fold")
        table.add_column("layer")
        has_shapes = any(row.shape for row in self.rows)
        if has_shapes:
            table.add_column("output")
        table.add_column("parameters", justify="right")
        for row in self.rows:
            count = f"{row.trainable + row.frozen:,}{_frozen(row)}"
            table.add_row(row.path, row.kind, *([row.shape] if has_shapes else []), count)
        return Group(table, self._totals())

    def _totals(self) -> str:
        frozen = f", {self.frozen:,} frozen" if self.frozen else ""
        return f"{self.total:,} parameters: {self.trainable:,} trainable{frozen}; {self._bytes()}"

    def _bytes(self) -> str:
        size, unit = float(self.size), "bytes"
        for larger in ("KiB", "MiB", "GiB", "TiB"):
            if size < 1024:
                break
            size, unit = size / 1024, larger
        return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"

    def __str__(self) -> str:
        from rich.console import Console

        console = Console(width=120, color_system=None, force_terminal=False, force_jupyter=False)
        with console.capture() as captured:
            console.print(self)
        return "\n".join(line.rstrip() for line in captured.get().splitlines())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Table for notebooks."""
        has_shapes = any(row.shape for row in self.rows)
        names = ["path", "layer", *(["output"] if has_shapes else []), "parameters"]
        lines = [
            [row.path, row.kind, *([row.shape] if has_shapes else []), f"{row.trainable + row.frozen:,}{_frozen(row)}"]
            for row in self.rows[:_SHOWN]
        ]
        if len(self.rows) > _SHOWN:
            lines.append([f"and {len(self.rows) - _SHOWN:,} more", *[""] * (len(names) - 1)])
        head = "".join(f"<th>{name}</th>" for name in names)
        body = "".join("<tr>" + "".join(f"<td>{escape(text)}</td>" for text in line) + "</tr>" for line in lines)
        return (
            f"<b>{escape(self.title)}</b><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
            f"{escape(self._totals())}"
        )


def _frozen(row: Row) -> str:
    return " (frozen)" if row.frozen and not row.trainable else ""


# Number of layers that a table in a notebook has.
_SHOWN = 200


def summarize(model: Module, inputs: tuple[Any, ...]) -> Summary:
    """Summary of a model, with output shapes if ``inputs`` are given."""
    shapes = _shapes(model, inputs) if inputs else {}
    rows: list[Row] = []
    counted: set[tuple[int, str]] = set()
    for path, module in model.named_modules():
        held: dict[str, list[int]] = {"trainable": [], "frozen": []}
        for holder, name in (module._holder(name) for name in module._roles):
            # A tied tensor counts once.
            if (id(holder), name) not in counted and holder._roles[name] in held:
                held[holder._roles[name]].append(_size(getattr(holder, name)))
            counted.add((id(holder), name))
        rows.append(
            Row(
                path or "(whole)",
                type(module).__name__,
                shapes.get(path, ""),
                sum(held["trainable"]),
                sum(held["frozen"]),
            )
        )
    size = sum(_size(x) * as_dtype(x.dtype).bits // 8 for x in model.parameters(trainable=None).values())
    return Summary(type(model).__name__, rows, size)


def _size(tensor: Any) -> int:
    return math.prod(tensor.shape)


def _shapes(model: Module, inputs: tuple[Any, ...]) -> dict[str, str]:
    """Output shapes of all modules by path, from one call in evaluation mode; the model is restored afterwards."""
    tensors = model.tensors()
    dtype = next((tensor.dtype for tensor in model.parameters(trainable=None).values()), None)
    modes = [(module, module.training) for module in model.modules()]
    shapes: dict[str, str] = {}
    try:
        for path, module in model.named_modules():
            object.__setattr__(module, "forward", _recording(module.forward, path, shapes))
        with use_backend(model.backend):
            _call(model.eval(), inputs, dtype)
    finally:
        for module, mode in modes:
            module.__dict__.pop("forward", None)
            object.__setattr__(module, "training", mode)
        model.assign(tensors)
    return shapes


def _call(model: Module, inputs: tuple[Any, ...], dtype: Any) -> None:
    """Call a model with zeros for shapes, in ``dtype`` or, if the model rejects it, int64."""
    try:
        model(*[_example(value, dtype) for value in inputs])
    except TypeError as error:
        try:
            model(*[_example(value, "int64") for value in inputs])
        except Exception:
            raise error from None


def _example(value: Any, dtype: Any) -> Any:
    is_shape = isinstance(value, tuple) and all(isinstance(n, int) for n in value)
    return ops.zeros(value, dtype=dtype) if is_shape else value


def _recording(forward: Callable[..., Any], path: str, shapes: dict[str, str]) -> Callable[..., Any]:
    """``forward``, which also records the shapes of its results in ``shapes``."""

    def recorded(*args: Any, **kwargs: Any) -> Any:
        result = forward(*args, **kwargs)
        found = [str(list(x.shape)) for x in tree.leaves(result) if hasattr(x, "shape")]
        shapes[path] = ", ".join(found)
        return result

    return recorded
