"""The cost of uniform and normal numbers, compared with the generator of each engine and with NumPy's Philox.

Figures are ratios of medians over interleaved turns on one thread. JAX has no generator with a state: its functions
are compiled by ``jax.jit`` and called with a key that was made before. Run it as

    python benchmarks/randomness.py [--quick] [--engines numpy torch mlx jax] [--ops uniform normal] [--json FILE]

If Numba is installed, its loops are compiled before anything is measured; NUMBA_DISABLE_JIT=1 measures without them.
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

# Statements that call the generator of each engine.
NATIVES = {
    ("numpy", "uniform"): "generator.random(n, dtype=float32)",
    ("numpy", "normal"): "generator.standard_normal(n, dtype=float32)",
    ("torch", "uniform"): "engine.rand(n)",
    ("torch", "normal"): "engine.randn(n)",
    ("mlx", "uniform"): "engine.random.uniform(shape=(n,))",
    ("mlx", "normal"): "engine.random.normal((n,))",
    ("jax", "uniform"): "uniform(key, (n,), float32)",
    ("jax", "normal"): "normal(key, (n,), float32)",
}


class Plan(NamedTuple):
    """What to measure, and how often."""

    engines: list[str]
    draws: list[str]
    repeats: int
    turn: float


def rows(plan: Plan) -> Iterator[dict[str, Any]]:
    """Figures of every engine, draw and size: microseconds per way, and ratios to the generator of the engine."""
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
        if name == "jax":
            import jax

            names |= {draw: jax.jit(getattr(jax.random, draw), static_argnums=(1, 2)) for draw in plan.draws}
            names["key"] = jax.random.key(1)
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
    """Name and statement of each way, and whether its result must be evaluated or waited for."""
    own = NATIVES[engine, draw]
    return [
        (NATIVE, own, True),
        (AGAIN, own, True),
        (EMBER, f"ours.{draw}(n, key=7)", True),
        (PHILOX, NATIVES["numpy", draw].replace("generator", "philox"), False),
    ]


def show(found: list[dict[str, Any]], console: Any) -> None:
    made = table("Time of a draw, as a multiple of the time of the engine's generator")
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
    with stage.show_progress(len(plan.engines) * len(plan.draws) * len(SIZES)) as advance:
        for row in rows(plan):
            found.append(row)
            advance(row["engine"], 1)
    show(found, stage.results)
    write({**where, "repeats": plan.repeats, "rows": found}, options.json)


if __name__ == "__main__":
    main()
