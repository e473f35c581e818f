"""Progress of an epoch, shown on a terminal."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Figures = dict[str, float]

# Seconds between two displays of the loss; reading it waits for the computation.
INTERVAL = 0.25

# Seconds after which a compilation is shown.
PATIENCE = 3.0

# Terminal width, in columns, below which the bar and the figures do not fit on one line.
NARROW = 120


class Progress:
    """Progress bar of every epoch: loss, metrics, examples per second, memory of the device and remaining time.

    Args:
        epochs: number of epochs; ``None`` if unknown.
        verbose: 0 for no output; 1 or ``None`` for the bar, on terminals only; 2 for one line per epoch.
        is_shown: whether this process is the one that shows progress.
    """

    def __init__(self, epochs: int | None, verbose: int | None, is_shown: bool = True) -> None:
        if verbose not in (None, 0, 1, 2):
            raise ValueError(f"Trainer: verbose must be 0, 1, 2 or None, got {verbose!r}")
        self.of = "" if epochs is None else f"/{epochs}"
        self.has_lines = is_shown and verbose == 2
        self.has_bar = is_shown and verbose in (None, 1)
        self.console: Any = None
        if self.has_bar or self.has_lines:
            from rich.console import Console

            self.console = Console(file=sys.stdout)
            self.has_bar = self.has_bar and self.console.is_terminal
        # Without a terminal, there is no bar, but a line that is rare does no harm.
        self.has_notes = self.has_bar or self.has_lines or (is_shown and verbose == 1)

    @contextmanager
    def epoch(self, number: int, total: int, done: int) -> Iterator[Epoch]:
        """Context manager whose value is notified of every step of epoch ``number``.

        Args:
            total: number of batches; 0 if unknown.
            done: number of batches done before, in a resumed epoch.
        """
        if not self.has_bar:
            yield Epoch()
            return
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as Bars
        from rich.text import Text

        is_narrow = self.console.width < NARROW
        columns = (
            TextColumn(f"epoch {number + 1}{self.of}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            *([] if is_narrow else [TextColumn("{task.fields[figures]}")]),
            TextColumn("{task.fields[pace]}", style="dim"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )

        class Lines(Bars):
            """Bars that show the figures on a separate line on a narrow terminal."""

            def get_renderables(self) -> Iterator[Any]:
                yield from super().get_renderables()
                if is_narrow:
                    yield from (Text(task.fields["figures"]) for task in self.tasks if task.fields["figures"])

        with Lines(*columns, console=self.console, auto_refresh=False) as bars:
            task = bars.add_task("", total=total or None, completed=done, figures="", pace="")
            yield _Bar(bars, task)

    def line(self, number: int, record: Figures) -> None:
        """Print the figures of an epoch on one line if ``verbose`` is 2."""
        if self.has_lines:
            # ``print`` would break lines at 80 columns where there is no terminal.
            self.console.out(f"epoch {number}{self.of}  {format_figures(record)}", highlight=False)

    def note(self, text: str) -> None:
        """Print a line about the run."""
        if self.has_notes:
            self.console.out(text, highlight=False)


class Epoch:
    """Listener of an epoch that shows nothing."""

    def step(
        self, examples: int, figures: Callable[[], Figures], memory: Callable[[], int | None] = lambda: None
    ) -> None:
        """Called after every step. Calling ``figures`` waits for the computation; it is optional.

        Args:
            memory: function that returns the number of bytes in use on the device; ``None`` if unknown.
        """

    def end(self, record: Figures) -> None:
        """Called after the epoch."""

    @contextmanager
    def compilation(self) -> Iterator[None]:
        """Context manager around a step that is compiled."""
        yield


class _Bar(Epoch):
    def __init__(self, bars: Any, task: Any) -> None:
        self.bars, self.task = bars, task
        self.begin = self.last = time.perf_counter()
        self.seen = 0
        self.was_compiled = False
        self.memory: Callable[[], int | None] = lambda: None

    def step(
        self, examples: int, figures: Callable[[], Figures], memory: Callable[[], int | None] = lambda: None
    ) -> None:
        self.seen += examples
        if self.was_compiled:
            # The speed is that of the steps that follow.
            self.begin, self.seen, self.was_compiled = time.perf_counter(), 0, False
        self.memory = memory
        self.bars.update(self.task, advance=1)
        if time.perf_counter() - self.last > INTERVAL:
            self._show(figures())

    @contextmanager
    def compilation(self) -> Iterator[None]:
        is_done = threading.Event()
        thread = threading.Thread(target=self._show_compilation, args=(is_done,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_done.set()
            thread.join()
            self.bars.update(self.task, figures="")
            self.was_compiled = True

    def _show_compilation(self, is_done: threading.Event) -> None:
        """Show how long the compilation takes until it is done, once it takes more than a few seconds."""
        begin, wait = time.perf_counter(), PATIENCE
        while not is_done.wait(wait):
            wait = 1.0
            seconds = time.perf_counter() - begin
            self.bars.update(self.task, figures=f"compiling the training step: {seconds:.0f} s")
            self.bars.refresh()

    def end(self, record: Figures) -> None:
        # The bar already shows the elapsed time.
        self._show({name: value for name, value in record.items() if name != "seconds"})

    def _show(self, figures: Figures) -> None:
        self.last = time.perf_counter()
        pace = f"{self.seen / max(self.last - self.begin, 1e-9):,.0f}/s" if self.seen else ""
        memory = self.memory()
        used = "" if memory is None else f"  {memory / 2**30:.1f} GiB"
        self.bars.update(self.task, figures=format_figures(figures) + used, pace=pace)
        self.bars.refresh()


def format_figures(figures: Figures) -> str:
    """Figures as one line of text."""
    return "  ".join(f"{name} {value:.4g}" for name, value in figures.items() if name != "learning_rate")
