"""Uniform and normal numbers against every engine's own generator, and beside NumPy's Philox.

The ratio of one time to another, as medians over interleaved turns on one thread. Run it as

    python benchmarks/randomness.py [--quick] [--engines numpy torch mlx] [--ops uniform normal] [--json FILE]

Where Numba is installed, its loops are compiled before anything is measured; NUMBA_DISABLE_JIT=1 measures without them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any, NamedTuple

from measuring import (
    AGAIN,
    EMBER,
    NATIVE,
    Caller,
    Engine,
    Stage,
    add_options,
    medians,
    parsed,
    setting,
    table,
    times,
    trust,
    write,
)

SIZES = (10**3, 10**6, 10**7)
REPEATS, QUICK, TURN = 15, 5, 0.05
PHILOX = "Philox"

# What an engine's own generator is asked for, in the names that stand in the statement.
NATIVES = {
    ("numpy", "uniform"): "generator.random(n, dtype=float32)",
    ("numpy", "normal"): "generator.standard_normal(n, dtype=float32)",
    ("torch", "uniform"): "engine.rand(n)",
    ("torch", "normal"): "engine.randn(n)",
    ("mlx", "uniform"): "engine.random.uniform(shape=(n,))",
    ("mlx", "normal"): "engine.random.normal((n,))",
}


class Plan(NamedTuple):
    """What is to be measured, and how often."""

    engines: list[str]
    draws: list[str]
    repeats: int
    turn: float


def rows(plan: Plan) -> Iterator[dict[str, Any]]:
    """The figures of every engine, draw and size: microseconds per way, and ratios to the engine's own generator."""
    import numpy as np

    import ember_ml
    from ember_ml import ops

    for name in plan.engines:
        engine = Engine(name)
        ember_ml.set_backend(name)
        names = {
            "engine": engine.module,
            "generator": np.random.default_rng(1),
            "philox": np.random.Generator(np.random.Philox(1)),
            "float32": np.float32,
            "ours": ops.random,
        }
        for draw in plan.draws:
            getattr(ops.random, draw)(max(SIZES), key=7)
            for size in SIZES:
                timers = {
                    way: Caller(statement, {**names, "n": size}).timer({}, engine.finish if finished else None)
                    for way, statement, finished in ways(name, draw)
                }
                found = medians(timers, plan.repeats, plan.turn)
                yield {
                    "engine": name,
                    "draw": draw,
                    "size": size,
                    "microseconds": found,
                    "ratios": {way: taken / found[NATIVE] for way, taken in found.items() if way != NATIVE},
                }


def ways(engine: str, draw: str) -> list[tuple[str, str, bool]]:
    """Names, statements, and whether a lazy engine has to finish: the engine's generator, ours, and NumPy's Philox."""
    own = NATIVES[engine, draw]
    return [
        (NATIVE, own, True),
        (AGAIN, own, True),
        (EMBER, f"ours.{draw}(n, key=7)", True),
        (PHILOX, NATIVES["numpy", draw].replace("generator", "philox"), False),
    ]


def show(found: list[dict[str, Any]], console: Any) -> None:
    made = table("Time of a draw, as a multiple of the engine's own generator's")
    for heading in ("engine", "draw", "numbers", "native, us", EMBER, PHILOX, "ours / Philox"):
        made.add_column(heading, justify="left" if heading in ("engine", "draw") else "right")
    for row in found:
        taken, ratios = row["microseconds"], row["ratios"]
        made.add_row(
            row["engine"],
            row["draw"],
            f"{row['size']:,}",
            f"{taken[NATIVE]:,.0f}",
            times(ratios[EMBER]),
            times(ratios[PHILOX]),
            times(taken[EMBER] / taken[PHILOX]),
        )
    console.print(made)
    console.print(trust([row["ratios"][AGAIN] for row in found]), highlight=False)


def arguments(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add_options(parser, ["uniform", "normal"], REPEATS, QUICK, plot=False)
    return parsed(parser, given)


def main(given: list[str] | None = None) -> None:
    options = arguments(given)
    stage = Stage.of(options)
    plan = Plan(options.engines, options.ops, options.repeats or (QUICK if options.quick else REPEATS), TURN)
    where = setting()
    stage.introduce(where)
    found = []
    with stage.telling(len(plan.engines) * len(plan.draws) * len(SIZES)) as tell:
        for row in rows(plan):
            found.append(row)
            tell(row["engine"], 1)
    show(found, stage.results)
    write({**where, "repeats": plan.repeats, "rows": found}, options.json)


if __name__ == "__main__":
    main()
