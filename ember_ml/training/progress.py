"""The progress of an epoch, shown on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Figures = dict[str, float]

# Seconds between two looks at the loss, which wait for it.
INTERVAL = 0.25

# Columns of a terminal below which a bar and figures do not go on one line.
NARROW = 120


class Progress:
    """A bar for every epoch, with loss, metrics, examples a second and time left; nothing off a terminal.

    Args:
        verbose: 0 for nothing, 1 or ``None`` for the bar, 2 for a line for every epoch, on a terminal or not.
    """

    def __init__(self, epochs: int, verbose: int | None) -> None:
        if verbose not in (None, 0, 1, 2):
            raise ValueError(f"Trainer: verbose must be 0, 1, 2 or None, got {verbose!r}")
        self.epochs = epochs
        self.has_lines = verbose == 2
        self.has_bar = verbose in (None, 1)
        self.console: Any = None
        if self.has_bar or self.has_lines:
            from rich.console import Console

            self.console = Console(file=sys.stdout)
            self.has_bar = self.has_bar and self.console.is_terminal

    @contextmanager
    def epoch(self, number: int, total: int, done: int) -> Iterator[Epoch]:
        """What hears of every update of an epoch."""
        if not self.has_bar:
            yield Epoch()
            return
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as Bars
        from rich.text import Text

        is_narrow = self.console.width < NARROW
        columns = (
            TextColumn(f"epoch {number + 1}/{self.epochs}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            *([] if is_narrow else [TextColumn("{task.fields[figures]}")]),
            TextColumn("{task.fields[pace]}", style="dim"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )

        class Lines(Bars):
            """Where there is little room, the figures have a line of their own below the bar."""

            def get_renderables(self) -> Iterator[Any]:
                yield from super().get_renderables()
                if is_narrow:
                    yield from (Text(task.fields["figures"]) for task in self.tasks if task.fields["figures"])

        with Lines(*columns, console=self.console, auto_refresh=False) as bars:
            task = bars.add_task("", total=total or None, completed=done, figures="", pace="")
            yield _Bar(bars, task)

    def line(self, number: int, record: Figures) -> None:
        """Print the figures of an epoch on a line, if that was asked for."""
        if self.has_lines:
            self.console.print(f"epoch {number}/{self.epochs}  {shown(record)}", highlight=False)


class Epoch:
    """What hears of an epoch, and says nothing."""

    def step(self, examples: int, figures: Callable[[], Figures]) -> None:
        """After an update; ``figures`` waits for numbers, and need not be called."""

    def end(self, record: Figures) -> None:
        """After the epoch."""


class _Bar(Epoch):
    def __init__(self, bars: Any, task: Any) -> None:
        self.bars, self.task = bars, task
        self.begin = self.last = time.perf_counter()
        self.seen = 0

    def step(self, examples: int, figures: Callable[[], Figures]) -> None:
        self.seen += examples
        self.bars.update(self.task, advance=1)
        if time.perf_counter() - self.last > INTERVAL:
            self._show(figures())

    def end(self, record: Figures) -> None:
        # The bar has a clock.
        self._show({name: value for name, value in record.items() if name != "seconds"})

    def _show(self, figures: Figures) -> None:
        self.last = time.perf_counter()
        pace = self.seen / max(self.last - self.begin, 1e-9)
        self.bars.update(self.task, figures=shown(figures), pace=f"{pace:,.0f}/s")
        self.bars.refresh()


def shown(figures: Figures) -> str:
    """Figures on a line."""
    return "  ".join(f"{name} {value:.4g}" for name, value in figures.items() if name != "learning_rate")
