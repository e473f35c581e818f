"""Shared code of the benchmarks: single-threaded engines, calls timed in interleaved turns, tables and reports."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import timeit
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module, metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

# NPROC is the size of the thread pools of XLA, which runs JAX on the CPU.
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "NPROC")

MODULES = {"numpy": "numpy", "torch": "torch", "mlx": "mlx.core", "jax": "jax.numpy"}

# The native call is measured twice, because the difference of its medians is the precision of the ratios.
NATIVE, AGAIN, EMBER = "native", "native again", "ember_ml"


class Engine:
    """Engine module, and the function that evaluates its lazy results or waits for asynchronous ones, if any."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.module = import_module(MODULES[name])
        self.finish: Callable[[Any], Any] | None = self.module.eval if name == "mlx" else None
        if name == "torch":
            self.module.set_num_threads(1)
        if name == "jax":
            import jax

            # Computed by the calling thread, as on the other engines: waking another one takes longer than most calls.
            jax.config.update("jax_cpu_enable_async_dispatch", False)
            # The backend of ember_ml turns on 64-bit dtypes, after which JAX compiles every function anew.
            jax.config.update("jax_enable_x64", True)
            self.finish = jax.block_until_ready


class Caller(NamedTuple):
    """Statement to time, and the names that it uses."""

    statement: str
    names: dict[str, Any]

    def result(self, operands: dict[str, Any]) -> Any:
        return eval(self.statement, {**operands, **self.names})

    def timer(self, operands: dict[str, Any], finish: Callable[[Any], Any] | None) -> timeit.Timer:
        """Timer of the statement, and of ``finish`` with its result if given."""
        names = {**operands, **self.names}
        if finish is None:
            return timeit.Timer(self.statement, globals=names)
        return timeit.Timer(f"finish({self.statement})", globals={**names, "finish": finish})


class SkippedError(Exception):
    """A measurement that cannot be made; the message says why."""


def working(
    ways: dict[str, Callable[[], Caller]], operands: dict[str, Any], agrees: Callable[[Any], bool]
) -> tuple[dict[str, Caller], dict[str, str]]:
    """Ways whose result agrees with the native one, and the reasons why others are skipped."""
    callers: dict[str, Caller] = {}
    skipped: dict[str, str] = {}
    for way, caller_of in ways.items():
        try:
            caller = caller_of()
            if not agrees(caller.result(operands)):
                raise SkippedError("its result differs from the native one")
        except SkippedError as reason:
            skipped[way] = str(reason)
        except Exception as error:
            skipped[way] = f"{type(error).__name__}: {error}".splitlines()[0]
        else:
            callers[way] = caller
    return callers, skipped


def agree(found: Any, expected: Any, relative: float = 1e-4, absolute: float = 1e-8) -> bool:
    """Whether two results have the same shape and, within rounding, the same values."""
    import numpy as np

    found, expected = np.asarray(found), np.asarray(expected)
    return found.shape == expected.shape and bool(np.allclose(found, expected, rtol=relative, atol=absolute))


def quicker(
    callers: list[Caller], operands: dict[str, Any], finish: Callable[[Any], Any] | None, turn: float
) -> Caller:
    """Caller with the smallest median over nine short turns. Those that raise a ``TypeError`` are left out.

    ``jax.jit`` raises it for functions whose results have a shape that depends on values.
    """
    timers: dict[str, timeit.Timer] = {}
    for i, caller in enumerate(callers):
        with suppress(TypeError):
            caller.result(operands)
            timers[str(i)] = caller.timer(operands, finish)
    found = medians(timers, 9, turn) if len(timers) > 1 else dict.fromkeys(timers, 0.0)
    return callers[int(min(found, key=lambda i: found[i]))]


def medians(
    timers: dict[str, timeit.Timer], repeats: int, turn: float, settle: Callable[[], Any] = lambda: None
) -> dict[str, float]:
    """Median time of every statement over interleaved turns, in microseconds."""
    found = turns(timers, repeats, turn, settle)
    return {way: statistics.median(times) * 1e6 for way, times in found.items()}


def turns(
    timers: dict[str, timeit.Timer], repeats: int, turn: float, settle: Callable[[], Any] = lambda: None
) -> dict[str, list[float]]:
    """Times of every statement in interleaved turns, in seconds; ``timeit`` disables garbage collection."""
    counts = {way: _count(timer, turn) for way, timer in timers.items()}
    found: dict[str, list[float]] = {way: [] for way in timers}
    order = deque(timers.items())
    for _ in range(repeats):
        for way, timer in order:
            found[way].append(timer.timeit(counts[way]) / counts[way])
        # Rotated, so that no statement always follows the same one.
        order.rotate(1)
        settle()
    return found


def _count(timer: timeit.Timer, turn: float) -> int:
    """Number of calls in a turn. Measuring it also warms up caches and the interpreter."""
    count, taken = 1, timer.timeit(1)
    while taken < turn / 2:
        count *= 2
        taken = timer.timeit(count)
    return max(1, round(count * turn / taken))


def times(ratio: float) -> str:
    return f"{ratio:.2f}x" if ratio < 10 else f"{ratio:.0f}x"


def trust(again: list[float]) -> str:
    """Range of the ratios of the native call to itself, which is the precision of all ratios."""
    low, middle, high = min(again), statistics.median(again), max(again)
    text = f"The native call against itself: {low:.3f}x to {high:.3f}x, in the middle {middle:.3f}x."
    return text + (" The machine is busy: measure again." if high / low > 1.15 else "")


def skipped_lines(found: list[dict[str, Any]]) -> Iterator[str]:
    """One line per way and reason, with the calls unless it applies to all of them."""
    concerned: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in found:
        for way, reason in row["skipped"].items():
            concerned.setdefault((way, reason), []).append(row)
    for (way, reason), some in concerned.items():
        engines, cases = (list(dict.fromkeys(row[key] for row in some)) for key in ("engine", "case"))
        calls = "" if len(cases) == len({row["case"] for row in found}) else f", {', '.join(cases)}"
        yield f"Skipped: {way} on {' and '.join(engines)}{calls}: {reason}"


def table(title: str) -> Any:
    from rich import box
    from rich.table import Table

    made = Table(title=title, box=box.SIMPLE_HEAD, padding=(0, 0, 0, 1))
    made.title_justify, made.title_style = "left", "bold"
    return made


def bars(axes: Any, heights: dict[str, list[float]], colours: dict[str, str], top: float) -> None:
    """Draw grouped bars of ratios. Bars above ``top`` are cut off and labeled with their height."""
    thick = 0.84 / max(len(heights), 1)
    for k, (way, some) in enumerate(heights.items()):
        places = [i - 0.42 + thick * (k + 0.5) for i in range(len(some))]
        axes.bar(places, some, thick, label=way, color=colours[way])
        for place, height in zip(places, some, strict=True):
            if height > top:
                text = f"{height:.0f}" if height >= 10 else f"{height:.1f}"
                axes.text(place, top * 1.01, text, ha="center", va="bottom", fontsize=6, rotation=90)
    axes.axhline(1, color="black", linewidth=0.8)


def finish_bars(axes: Any, labels: list[str], top: float) -> None:
    axes.set_ylim(0, top)
    axes.set_xlim(-0.6, len(labels) - 0.4)
    axes.set_xticks(range(len(labels)), labels, rotation=45, ha="right", rotation_mode="anchor")
    axes.tick_params(axis="x", labelsize=8, length=0)
    axes.spines[["top", "right"]].set_visible(False)


def save_figure(figure: Any, panels: Any, path: str) -> None:
    """Write the figure, with one legend for all its panels."""
    from matplotlib import pyplot

    handles = {label: h for row in panels for p in row for h, label in zip(*p.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=len(handles), frameon=False)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def setting(*distributions: str) -> dict[str, Any]:
    """Description of the machine and the versions."""
    names = ("numpy", "torch", "mlx", "jax", "ember-ml", *distributions)
    return {
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors",
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "versions": {name: version for name in names if (version := _version(name))},
    }


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def installed() -> list[str]:
    return [name for name in MODULES if find_spec(name) is not None]


def add_options(
    parser: argparse.ArgumentParser, ops: list[str], repeats: int, quick: int, *, plot: bool = True
) -> None:
    """Add the options that every benchmark has; ``--plot`` only if ``plot``."""
    engines = installed()
    add = parser.add_argument
    add("--engines", nargs="+", choices=engines, default=engines, metavar="NAME", help=", ".join(engines))
    add("--ops", nargs="+", choices=ops, default=ops, metavar="NAME", help=", ".join(ops).replace("%", "%%"))
    add("--repeats", type=positive, metavar="N", help=f"turns that a median is taken over (default: {repeats})")
    add("--quick", action="store_true", help=f"{quick} turns instead of {repeats}")
    add("--json", metavar="FILE", help="also write all figures as JSON; - is standard output")
    if plot:
        add("--plot", metavar="FILE.png", help="also draw the ratios as bars (needs matplotlib)")


def parsed(parser: argparse.ArgumentParser, given: list[str] | None) -> argparse.Namespace:
    """Parse the options, and limit engines that are imported later to one thread."""
    options = parser.parse_args(given)
    if getattr(options, "plot", None) and find_spec("matplotlib") is None:
        parser.error("--plot needs matplotlib: pip install 'ember-ml[bench]'")
    os.environ.update(dict.fromkeys(THREADS, "1"))
    return options


class Stage(NamedTuple):
    """Consoles of a benchmark, one for results and one for progress."""

    results: Any
    progress: Any

    @classmethod
    def of(cls, options: argparse.Namespace) -> Stage:
        """Consoles for these options: results go to standard output, unless the JSON goes there."""
        from rich.console import Console

        progress = Console(stderr=True)
        return cls(progress if options.json == "-" else Console(), progress)

    def introduce(self, where: dict[str, Any]) -> None:
        say = self.results.print
        say(f"{where['machine']}, Python {where['python']}, load {where['load']}", highlight=False)
        say(", ".join(f"{name} {version}" for name, version in where["versions"].items()), highlight=False)
        say()

    @contextmanager
    def show_progress(self, total: float) -> Iterator[Callable[[str, float], None]]:
        """Function that shows what is measured now and advances the progress bar by a number of steps."""
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        # Refreshed by hand, because a drawing thread would disturb the measurement.
        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        with Progress(*columns, console=self.progress, transient=True, auto_refresh=False) as progress:
            task = progress.add_task("starting", total=total)
            said = ""

            def advance(what: str, steps: float) -> None:
                nonlocal said
                progress.update(task, description=what, advance=steps)
                progress.refresh()
                if what != said and not self.progress.is_terminal:
                    self.progress.print(what, highlight=False)
                said = what

            yield advance


def write(report: dict[str, Any], path: str | None) -> None:
    """Write the report as JSON to a file, to standard output if ``path`` is ``"-"``, or not at all."""
    text = json.dumps(report, indent=1)
    if path == "-":
        print(text)
    elif path:
        Path(path).write_text(text + "\n", encoding="utf-8")
