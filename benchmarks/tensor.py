"""The cost of an operator of ``EmberTensor`` over the native operator, compared with other wrappers.

Operators and indexing on float32 tensors of 4 elements, on every installed engine, each written as in a program:
``x + y``. The figure is the additional time over the native statement, in microseconds: the cost of wrapping.

Statements are timed in short turns: native, EmberTensor, each peer, native again. A figure is the median over all
turns, which are spread over the whole time of an engine, so that a busy moment does not affect all turns of one
statement. Engines use one thread. On MLX the graph node is built and dropped. Operators of JAX are those of its arrays,
not compiled functions, as a program writes them.

The result of one operator differs from that of the engines: a remainder of zero has the sign of the dividend in torch,
MLX and JAX, and that of the divisor in the array API standard. There a native statement with the result of the standard
is measured too, in a separate row, and the target applies to that row. On JAX it is a compiled function.

Peers are measured when installed (``pip install 'ember-ml[bench]'``): array-api-strict, which wraps only NumPy, and
eagerpy, which wraps NumPy, torch and JAX.
"""

from __future__ import annotations

import argparse
import statistics
import timeit
from collections.abc import Callable, Iterator
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

from measuring import (
    AGAIN,
    NATIVE,
    Caller,
    Engine,
    SkippedError,
    Stage,
    add_options,
    agree,
    parsed,
    setting,
    skipped_lines,
    table,
    trust,
    turns,
    working,
    write,
)

EMBER, STRICT, EAGERPY = "EmberTensor", "array-api-strict", "eagerpy"
COLUMNS = (EMBER, STRICT, EAGERPY, AGAIN)

SIZE = 4
TURN = 0.002
ROUNDS = 5

# The maximum additional time of an operator, in microseconds.
TARGET = 1.0

PANEL = (
    "x + y", "x - y", "x * y", "x / y", "x // y", "x % y", "x ** y", "x @ y", "x < y", "x == y", "-x", "abs(x)",
    "x + 2.0", "2.0 - x", "x * 2", "x[1]", "x[1:3]",
)  # fmt: skip

# Native statements with the result of the standard, for operators whose result differs from it.
STANDARD = {
    ("torch", "x % y"): "e.copysign(e.remainder(x, y), y)",
    ("mlx", "x % y"): "(s := e.sign(y)) * (s * e.remainder(x, y) + 0)",
    ("jax", "x % y"): "remainder(x, y)",
}
AS_STANDARD = ", as the standard has it"


class Plan(NamedTuple):
    """What to measure, and for how long."""

    engines: list[str]
    cases: list[str]
    repeats: int
    turn: float


def _native(engine: Engine) -> dict[str, Any]:
    make = engine.module.array if engine.name != "torch" else engine.module.tensor
    float32 = engine.module.float32
    x, y = [1.0, 2.5, 3.0, 4.0], [2.0, 0.5, 4.0, 1.5]
    names = {"x": make(x, dtype=float32), "y": make(y, dtype=float32), "e": engine.module}
    return names | {"remainder": _jax_remainder()} if engine.name == "jax" else names


@cache
def _jax_remainder() -> Callable[..., Any]:
    import jax
    import jax.numpy as jnp

    return jax.jit(lambda x, y: jnp.copysign(jnp.remainder(x, y), y))  # type: ignore[no-any-return]


def _wrapped(engine: Engine, wrap: Callable[[Any], Any]) -> dict[str, Any]:
    return {name: wrap(x) for name, x in _native(engine).items() if name in ("x", "y")}


def _ember(engine: Engine) -> dict[str, Any]:
    from ember_ml.nn.tensor import EmberTensor

    return _wrapped(engine, EmberTensor)


def _strict(engine: Engine) -> dict[str, Any]:
    if engine.name != "numpy":
        raise SkippedError("array-api-strict wraps only NumPy")
    if find_spec("array_api_strict") is None:
        raise SkippedError("array-api-strict is not installed")
    return _wrapped(engine, import_module("array_api_strict").asarray)


def _eagerpy(engine: Engine) -> dict[str, Any]:
    if engine.name == "mlx":
        raise SkippedError("eagerpy does not support MLX")
    if find_spec("eagerpy") is None:
        raise SkippedError("eagerpy is not installed")
    return _wrapped(engine, import_module("eagerpy").astensor)


WAYS: dict[str, Callable[[Engine], dict[str, Any]]] = {
    NATIVE: _native, EMBER: _ember, STRICT: _strict, EAGERPY: _eagerpy, AGAIN: _native,
}  # fmt: skip


def rows(plan: Plan, advance: Callable[[str, int], object]) -> Iterator[dict[str, Any]]:
    """One record per engine and statement: its time in every way, in microseconds, or why there is none."""
    from ember_ml import set_backend

    for name in plan.engines:
        engine = Engine(name)
        set_backend(name)
        ways = []
        for case in plan.cases:
            ways.append((case, *_timers(engine, case, case)))
            if (name, case) in STANDARD:
                ways.append((case + AS_STANDARD, *_timers(engine, case, STANDARD[name, case])))
        times: list[dict[str, list[float]]] = [{way: [] for way in timers} for _, timers, _ in ways]
        for _ in range(ROUNDS):
            for (_, timers, _), found in zip(ways, times, strict=True):
                for way, some in turns(timers, -(-plan.repeats // ROUNDS), plan.turn).items():
                    found[way] += some
            advance(name, 1)
        for (case, _, skipped), found in zip(ways, times, strict=True):
            yield _row(name, case, found, skipped)


def _row(engine: str, case: str, times: dict[str, list[float]], skipped: dict[str, str]) -> dict[str, Any]:
    us = {way: statistics.median(some) * 1e6 for way, some in times.items()}
    surplus = {way: time - us[NATIVE] for way, time in us.items() if way != NATIVE}
    return {"engine": engine, "case": case, "us": us, "surplus_us": surplus, "skipped": skipped}


def _timers(engine: Engine, case: str, native: str) -> tuple[dict[str, timeit.Timer], dict[str, str]]:
    """Timers of the ways whose result agrees with the native one, and the reasons why others are skipped."""
    expected = eval(native, _native(engine))
    ways = {
        way: partial(_caller, native if operands_of is _native else case, operands_of, engine)
        for way, operands_of in WAYS.items()
    }
    callers, skipped = working(ways, {}, lambda found: agree(_plain(found), expected))
    return {way: caller.timer({}, None) for way, caller in callers.items()}, skipped


def _caller(statement: str, operands_of: Callable[[Engine], dict[str, Any]], engine: Engine) -> Caller:
    return Caller(statement, operands_of(engine))


def _plain(result: Any) -> Any:
    return result.raw if hasattr(result, "raw") else result


def verdicts(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Per engine: the slowest operator, and whether all operators meet the target."""
    results = []
    for engine in dict.fromkeys(row["engine"] for row in found):
        mine = [
            r
            for r in found
            if r["engine"] == engine and EMBER in r["surplus_us"] and (engine, r["case"]) not in STANDARD
        ]
        if mine:
            worst = max(mine, key=lambda row: row["surplus_us"][EMBER])
            value = worst["surplus_us"][EMBER]
            results.append(
                {"engine": engine, "case": worst["case"], "surplus_us": value, "target": TARGET, "met": value <= TARGET}
            )
    return results


def show(found: list[dict[str, Any]], console: Any) -> None:
    """A table per engine, what was skipped, and whether the target is met."""
    for engine in dict.fromkeys(row["engine"] for row in found):
        mine = [row for row in found if row["engine"] == engine]
        console.print(_table(engine, mine))
        console.print(trust([row["us"][AGAIN] / row["us"][NATIVE] for row in mine]), style="dim")
        console.print()
    for line in skipped_lines(found):
        console.print(line, style="dim", highlight=False, soft_wrap=True)
    for v in verdicts(found):
        colour, word = ("green", "met") if v["met"] else ("red", "missed")
        text = f"at most +{v['surplus_us']:.2f} us, for {v['case']} (target +{v['target']:.1f} us, [{colour}]{word}[/])"
        console.print(f"[bold]{v['engine']}[/]: {text}", highlight=False, soft_wrap=True)


def _table(engine: str, mine: list[dict[str, Any]]) -> Any:
    columns = [way for way in COLUMNS if any(way in row["surplus_us"] for row in mine)]
    made = table(f"{engine}, {SIZE} elements: microseconds over the native statement")
    made.add_column("statement", no_wrap=True)
    made.add_column("native us", justify="right", no_wrap=True)
    for way in columns:
        made.add_column(way, justify="right", style="bold" if way == EMBER else "")
    for row in mine:
        surplus = (f"{row['surplus_us'][way]:+.2f}" if way in row["surplus_us"] else "-" for way in columns)
        made.add_row(row["case"], f"{row['us'][NATIVE]:.3f}", *surplus)
    return made


def arguments(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="examples:\n"
        "  python benchmarks/tensor.py                             all engines\n"
        "  python benchmarks/tensor.py --quick --engines torch     a first impression\n"
        "  python benchmarks/tensor.py --ops 'x + y' 'x[1]'        two statements\n"
        "  python benchmarks/tensor.py --json - > figures.json     for machines; tables go to stderr",
    )
    add_options(parser, list(PANEL), 101, 15, plot=False)
    return parsed(parser, given)


def main(given: list[str] | None = None) -> None:
    options = arguments(given)
    stage = Stage.of(options)
    plan = Plan(options.engines, options.ops, options.repeats or (15 if options.quick else 101), TURN)
    where = setting("array-api-strict", "eagerpy")
    stage.introduce(where)
    found: list[dict[str, Any]] = []
    with stage.show_progress(len(plan.engines) * ROUNDS) as advance:
        found += rows(plan, advance)
    show(found, stage.results)
    write({**where, "repeats": plan.repeats, "rows": found, "targets": verdicts(found)}, options.json)


if __name__ == "__main__":
    main()
