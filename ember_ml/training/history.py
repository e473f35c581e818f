"""Losses and metrics of a training run."""

from __future__ import annotations

from typing import Any


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
