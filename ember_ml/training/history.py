"""Losses and metrics of a training run."""

from __future__ import annotations

import html
import math
from typing import Any

# Epochs that a notebook shows: so many first ones, and so many last ones.
_FIRST, _LAST = 5, 5

# Size of the curve in a notebook, in pixels, and the most points that it has.
_WIDTH, _HEIGHT, _POINTS = 480, 80, 240


class History:
    """Figures of every epoch, by name, and the loss of every step.

    >>> history = History()
    >>> history.add({"loss": 0.5})
    >>> history.add({"loss": 0.25, "val_loss": 0.3})
    >>> history["loss"], history["val_loss"], len(history)
    ([0.5, 0.25], [0.3], 2)
    """

    def __init__(self, epochs: list[dict[str, float]] | None = None, steps: list[float] | None = None) -> None:
        self.epochs = epochs or []
        self.steps = steps or []

    def add(self, record: dict[str, float]) -> None:
        """Append the figures of one epoch."""
        self.epochs.append(record)

    def names(self) -> list[str]:
        """Names of all figures, in order of first appearance."""
        return list(dict.fromkeys(name for record in self.epochs for name in record))

    def __getitem__(self, name: str) -> list[float]:
        found = [record[name] for record in self.epochs if name in record]
        if not found:
            raise KeyError(f"History: a name must be one of {', '.join(self.names()) or 'none yet'}, got {name!r}")
        return found

    def __contains__(self, name: object) -> bool:
        return any(name in record for record in self.epochs)

    def __len__(self) -> int:
        return len(self.epochs)

    def __repr__(self) -> str:
        last = ", ".join(f"{name}={value:.4g}" for name, value in self.epochs[-1].items()) if self.epochs else "empty"
        return f"<History of {len(self)} epochs: {last}>"

    def _repr_html_(self) -> str:
        """Curve of the loss and a table of the figures of every epoch, for notebooks."""
        names = self.names()
        rows = [(number, record) for number, record in enumerate(self.epochs, 1)]
        parts = [(rows, None)] if len(rows) <= _FIRST + _LAST + 1 else [(rows[:_FIRST], "…"), (rows[-_LAST:], None)]
        lines = [_html_row("th", ["epoch", *names])]
        for some, mark in parts:
            lines += [_html_row("td", [str(i), *(_shown(record.get(name)) for name in names)]) for i, record in some]
            lines += [] if mark is None else [_html_row("td", [mark] * (len(names) + 1))]
        title = html.escape(repr(self))
        return f"<div><p>{title}</p>{_svg_curve(self.steps)}<table>{''.join(lines)}</table></div>"

    def plot(self, path: Any = None) -> Any:
        """Matplotlib figure with the loss of every step, and one panel per metric with its value at every epoch.

        Args:
            path: file to save the figure to.
        """
        try:
            from matplotlib.figure import Figure
        except ImportError as error:
            raise ImportError("History.plot requires matplotlib: pip install 'ember-ml[plot]'") from error
        panels = [n for n in self.names() if not n.startswith("val_") and n not in ("seconds", "learning_rate")]
        figure = Figure(figsize=(4.5 * (len(panels) + 1), 3.5), layout="constrained")
        axes = figure.subplots(1, len(panels) + 1, squeeze=False)[0]
        axes[0].plot(range(1, len(self.steps) + 1), self.steps, linewidth=0.8)
        axes[0].set(title="loss", xlabel="update")
        for panel, name in zip(axes[1:], panels, strict=True):
            for key, label in ((name, "training"), (f"val_{name}", "validation")):
                points = [(i, record[key]) for i, record in enumerate(self.epochs, 1) if key in record]
                if points:
                    panel.plot(*zip(*points, strict=True), marker=".", label=label)
            panel.set(title=name, xlabel="epoch")
            panel.locator_params(axis="x", integer=True)
            panel.legend(frameon=False)
        for panel in axes:
            panel.spines[["top", "right"]].set_visible(False)
        if path is not None:
            figure.savefig(path, dpi=120)
        return figure


def _html_row(tag: str, cells: list[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in cells)}</tr>"


def _shown(value: Any) -> str:
    return "" if value is None else f"{float(value):.4g}"


def _svg_curve(losses: list[float]) -> str:
    """Picture of the loss of every step; empty if there are fewer than two finite ones."""
    # Means of neighbors, so that the picture stays small and a long run shows all of its steps.
    size = max(1, -(-len(losses) // _POINTS))
    groups = ([x for x in losses[i : i + size] if math.isfinite(x)] for i in range(0, len(losses), size))
    points = [(i, math.fsum(group) / len(group)) for i, group in enumerate(groups) if group]
    if len(points) < 2:
        return ""
    low, high = min(y for _, y in points), max(y for _, y in points)
    across, up = (_WIDTH - 4) / max(points[-1][0], 1), (_HEIGHT - 4) / (high - low or 1.0)
    path = " ".join(f"{2 + x * across:.1f},{_HEIGHT - 2 - (y - low) * up:.1f}" for x, y in points)
    label = f"loss of {len(losses)} steps, from {low:.4g} to {high:.4g}"
    return (
        f'<svg width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-label="{label}"><title>{label}</title>'
        f'<polyline points="{path}" fill="none" stroke="currentColor" stroke-width="1.2"/></svg>'
    )
