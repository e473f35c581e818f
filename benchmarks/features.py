"""The cost of fitting and applying features: ``ember_ml.nn.features`` on each engine against scikit-learn.

float32 rows, one thread. Both fit and transform the same rows, and must agree. Calls take turns: scikit-learn,
ember_ml, scikit-learn again; a figure is the median over all turns, a ratio the median of the ratios in each round.

The target: on NumPy, no slower than scikit-learn.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from operator import truediv
from typing import Any, NamedTuple

from measuring import (
    AGAIN,
    EMBER,
    NATIVE,
    Caller,
    Engine,
    Stage,
    add_options,
    agree,
    parsed,
    setting,
    skipped_lines,
    table,
    times,
    trust,
    turns,
    working,
    write,
)

REPEATS, QUICK = 15, 3

# Seconds in a turn.
TURN = 10e-3


class Case(NamedTuple):
    """A row of the panel: what is fitted, the shape of the rows, and the two ways to do it."""

    name: str
    shape: tuple[int, int]
    ember: str
    sklearn: str


FEW, MANY = (2000, 1000), (50_000, 64)

PANEL = [
    Case("StandardScaler", MANY, "features.StandardScaler()", "preprocessing.StandardScaler()"),
    Case("MinMaxScaler", MANY, "features.MinMaxScaler()", "preprocessing.MinMaxScaler()"),
    Case("RobustScaler", MANY, "features.RobustScaler()", "preprocessing.RobustScaler()"),
    Case("Normalizer", MANY, "features.Normalizer()", "preprocessing.Normalizer()"),
    Case("PCA", MANY, "features.PCA(16)", "decomposition.PCA(16)"),
    Case(
        "PCA, full", (600, 300), "features.PCA(16, svd_solver='full')", "decomposition.PCA(16, svd_solver='full')"
    ),
    Case(
        "PCA, randomized", FEW, "features.PCA(16, svd_solver='randomized', random_state=0)",
        "decomposition.PCA(16, svd_solver='randomized', random_state=0)",
    ),
    Case(
        "PCA, incremental", (10_000, 64), "features.PCA(16, svd_solver='incremental', batch_size=500)",
        "decomposition.IncrementalPCA(16, batch_size=500)",
    ),
]  # fmt: skip


def rows_of(shape: tuple[int, int]) -> Any:
    """Correlated features with well separated principal components."""
    import numpy as np

    rng = np.random.default_rng(0)
    rank = min(32, shape[1])
    strong = rng.standard_normal((shape[0], rank)) * np.geomspace(10, 1, rank)
    made = strong @ rng.standard_normal((rank, shape[1])) + 0.01 * rng.standard_normal(shape)
    return made.astype(np.float32)


def rows(engines: list[str], cases: list[Case], repeats: int, turn: float) -> Iterator[dict[str, Any]]:
    """One record per engine and case: the time of every way in microseconds, or why there is none."""
    import ember_ml
    from ember_ml.nn import features

    names = {name: import_module(f"sklearn.{name}") for name in ("preprocessing", "decomposition")}
    for engine in map(Engine, engines):
        for case in cases:
            ember_ml.set_backend(engine.name)
            host = rows_of(case.shape)
            operands = {"host": host, "x": ember_ml.ops.asarray(host)}
            native = partial(Caller, f"{case.sklearn}.fit_transform(host)", names)
            ember = partial(Caller, f"{case.ember}.fit_transform(x)", {"features": features})
            results: list[Any] = []

            def agrees(found: Any, results: list[Any] = results) -> bool:
                results.append(found)
                scale = float(abs(results[0]).max())
                return agree(found, results[0], 0.0, 1e-3 * scale)

            callers, skipped = working({NATIVE: native, EMBER: ember, AGAIN: native}, operands, agrees)
            timers = {way: caller.timer(operands, engine.finish) for way, caller in callers.items()}
            found = turns(timers, repeats, turn) if {NATIVE, EMBER} <= set(timers) else {}
            yield {
                "engine": engine.name,
                "case": case.name,
                "size": f"{case.shape[0]:,} x {case.shape[1]:,}",
                "us": {way: statistics.median(some) * 1e6 for way, some in found.items()},
                "ratios": {
                    way: statistics.median(map(truediv, some, found[NATIVE]))
                    for way, some in found.items()
                    if way != NATIVE
                },
                "skipped": skipped,
            }


def show(found: list[dict[str, Any]], say: Callable[..., Any]) -> None:
    """A table per engine, and what was skipped."""
    for engine in dict.fromkeys(row["engine"] for row in found):
        mine = [row for row in found if row["engine"] == engine and row["ratios"]]
        if not mine:
            continue
        made = table(f"{engine}, milliseconds")
        for column in ("features", "size", "scikit-learn", "ember_ml", "ratio", "again"):
            made.add_column(column, justify="left" if column in ("features", "size") else "right", no_wrap=True)
        for row in mine:
            us, ratios = row["us"], row["ratios"]
            taken = [f"{us[way] / 1000:.2f}" for way in (NATIVE, EMBER)]
            made.add_row(row["case"], row["size"], *taken, times(ratios[EMBER]), times(ratios[AGAIN]))
        say(made)
        say(trust([row["ratios"][AGAIN] for row in mine]), style="dim")
        say()
    for line in skipped_lines(found):
        say(line, style="dim", highlight=False, soft_wrap=True)


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser, [case.name for case in PANEL], REPEATS, QUICK, plot=False)
    options = parsed(parser, given)
    stage = Stage.of(options)
    where = setting("scikit-learn")
    stage.introduce(where)
    repeats = options.repeats or (QUICK if options.quick else REPEATS)
    cases = [case for case in PANEL if case.name in options.ops]
    found = []
    with stage.show_progress(len(options.engines) * len(cases)) as advance:
        for row in rows(options.engines, cases, repeats, TURN):
            found.append(row)
            advance(f"{row['engine']}: {row['case']}", 1)
    show(found, stage.results.print)
    write({**where, "repeats": repeats, "rows": found}, options.json)


if __name__ == "__main__":
    main()
