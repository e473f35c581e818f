"""The cost of a call: the function of the engine, ``ember_ml.ops``, and other libraries.

Operations on float32 tensors of 4 and of 100,000 elements, on every installed engine. The small case shows the
overhead of a call, the large case how much of it remains when there is work to do.

The targets are geometric means over ten operations that every engine has, each the median of five runs. A run is a
separate process, alternately with the C extension of dispatch and with ``EMBER_ML_PURE_PYTHON=1``.

Every call is timed as a program makes it, ``f(x, y)``, in short turns: native, ember_ml, each peer, native again. A
figure is the median over all turns, a ratio the quotient of two medians. Engines use one thread. On MLX the small
case builds the graph node and drops it; the large case evaluates the result. On JAX the calling thread computes the
result (asynchronous dispatch is off); on an accelerator, the large case waits for it. The native call on JAX is the
quicker of ``jnp.add`` and ``jax.jit(jnp.add)``, compiled beforehand; a few turns decide which of them is measured.

A last table is about JAX: operations that are several calls of ``jnp`` each, such as a softmax of 8 x 64, against the
same formula written in ``jnp`` and not compiled. The target applies to each of them.

Peers are measured when installed (``pip install 'ember-ml[bench]'``): autoray as ``do("add", x, y)``; array-api-compat
with the namespace looked up beforehand (``xp.add(x, y)``) or in every call (``array_namespace(x, y).add(x, y)``);
Keras in a separate process per engine, because its backend is fixed at import, against the native call in that process.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import timeit
from collections.abc import Callable, Iterator
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple, TypeAlias

from measuring import (
    AGAIN,
    EMBER,
    NATIVE,
    Caller,
    Engine,
    SkippedError,
    Stage,
    add_options,
    agree,
    bars,
    finish_bars,
    medians,
    parsed,
    positive,
    quicker,
    save_figure,
    setting,
    skipped_lines,
    table,
    times,
    trust,
    working,
    write,
)

SMALL, LARGE = 4, 100_000

# The two forms of the fast path, and what makes a process use each.
EXTENSION, PURE = "extension", "pure Python"
SPEEDS = {EXTENSION: {"EMBER_ML_PURE_PYTHON": ""}, PURE: {"EMBER_ML_PURE_PYTHON": "1"}}

# The operations of the targets, and the most that their geometric mean may be against the native calls.
TEN = ("add", "multiply", "exp", "maximum", "sqrt", "less", "matmul", "sum", "tanh", "negative")
TARGETS = {
    EXTENSION: {"numpy": 1.15, "torch": 1.12, "mlx": 1.4, "jax": 1.05},
    PURE: {"numpy": 2.0, "torch": 1.5, "mlx": 2.0},
}
TARGET_LARGE = 1.02
TARGET_COMPOSED = 0.8

# Seconds in a turn: long enough for the clock, short enough that few turns are interrupted on a busy machine.
TURN = 3e-4

# Below this size a lazy engine is timed building its graph, from it on computing the result.
EVALUATED_FROM = 10_000

# Elements of the first operand of composed operations.
COMPOSED_SIZE = 512


class Case(NamedTuple):
    """A row of the panel: an operation, the arguments it is called with, and those of them that are tensors."""

    name: str
    arguments: str
    tensors: str
    scalar: bool = False

    @property
    def label(self) -> str:
        return f"{self.name}({self.arguments})"


PANEL = [
    *(Case(name, "x, y", "x, y") for name in ("add", "subtract", "multiply", "divide", "maximum")),
    Case("add", "x, 2.0", "x", scalar=True),
    Case("power", "x, 2.0", "x", scalar=True),
    *(Case(name, "x", "x") for name in ("negative", "abs", "exp", "log", "sqrt", "tanh", "floor")),
    *(Case(name, "x, y", "x, y") for name in ("equal", "less")),
    Case("where", "mask, x, y", "mask, x, y"),
    *(Case(name, "x", "x") for name in ("sum", "mean")),
    Case("matmul", "a, b", "a, b"),
    Case("reshape", "x, shape", "x"),
    Case("concatenate", "both", "*both"),
]

# Operations on JAX that are several calls of jnp each.
COMPOSED = [
    Case("softmax", "m", "m"),
    Case("gelu", "m", "m"),
    Case("layer_normalization", "m, scale, offset", "m, scale, offset"),
    Case("sparse_categorical_crossentropy", "labels, m, from_logits=True", "labels, m"),
    Case("dot_product_attention", "q, k, v", "q, k, v"),
]

# Where another library calls an operation differently. torch's long names are slower aliases of the short ones.
NAMES = {
    "torch": {
        "subtract": "sub",
        "multiply": "mul",
        "divide": "div",
        "power": "pow",
        "negative": "neg",
        "equal": "eq",
        "less": "lt",
        "concatenate": "cat",
    },
    "array-api-compat": {"power": "pow", "concatenate": "concat"},
}


class Bench(Engine):
    """An engine with the functions of the panel, and its operands for a size."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._natives: dict[Any, Caller] = {}

    def native(self, case: Case, operands: dict[str, Any]) -> Caller:
        """The native call; on JAX the quicker of a function and of the same compiled."""
        if case in COMPOSED:
            return Caller(f"f({case.arguments})", {"f": by_hand()[case.name]})
        f = getattr(self.module, NAMES.get(self.name, {}).get(case.name, case.name))
        plain = Caller(f"f({case.arguments})", {"f": f})
        if self.name != "jax":
            return plain
        place = case, operands["shape"]
        if place not in self._natives:
            from jax import jit

            compiled = jit(f, static_argnames="shape") if case.name == "reshape" else jit(f)
            callers = [plain, Caller(f"compiled({case.arguments})", {"compiled": compiled})]
            self._natives[place] = quicker(callers, operands, self.finish_for(case, len(operands["x"])), TURN)
        return self._natives[place]

    def is_compiled(self, case: Case, operands: dict[str, Any]) -> bool:
        """Whether the native call is that of a compiled function."""
        return "compiled" in self.native(case, operands).names

    def finish_for(self, case: Case, size: int) -> Callable[[Any], Any] | None:
        """Function that evaluates a result or waits for it, if that is part of what is timed."""
        return self.finish if case in COMPOSED or size >= EVALUATED_FROM else None

    def operands(self, size: int) -> dict[str, Any]:
        """Values of the arguments in the panel: positive numbers, every third of them equal in ``x`` and ``y``."""
        x = [1 + i / size for i in range(size)]
        y = [a if i % 3 == 0 else 3 - a for i, a in enumerate(x)]
        make = self.module.array if self.name == "mlx" else getattr(self.module, "tensor", None) or self.module.asarray
        x, y = (make(v, dtype=self.module.float32) for v in (x, y))
        mask = x > y
        side = math.isqrt(size)
        a, b = (v[: side * side].reshape((side, side)) for v in (x, y))
        if self.finish is not None:
            self.finish([x, y, mask, a, b])
        found = {"x": x, "y": y, "mask": mask, "a": a, "b": b, "both": [x, y], "shape": (size, 1)}
        return found | self._composed_operands(x, y) if self.name == "jax" and size == COMPOSED_SIZE else found

    def _composed_operands(self, x: Any, y: Any) -> dict[str, Any]:
        """Eight rows with scale, offset and labels; queries, keys and values of eight positions and four heads."""
        m, heads = x.reshape(8, -1), (1, 8, 4, -1)
        row = {"m": m, "scale": m[0], "offset": m[1], "labels": self.module.arange(8)}
        return row | {"q": x.reshape(heads), "k": y.reshape(heads), "v": (x - y).reshape(heads)}


@cache
def by_hand() -> dict[str, Callable[..., Any]]:
    """The composed operations as formulas of ``jnp``."""
    import jax.numpy as jnp
    from jax.scipy.special import erf

    def softmax(x: Any) -> Any:
        e = jnp.exp(x - jnp.max(x, axis=-1, keepdims=True))
        return e / jnp.sum(e, axis=-1, keepdims=True)

    def gelu(x: Any) -> Any:
        return 0.5 * x * (1 + erf(x * math.sqrt(0.5)))

    def layer_normalization(x: Any, scale: Any, offset: Any) -> Any:
        centered = x - jnp.mean(x, axis=-1, keepdims=True)
        variance = jnp.mean(centered * centered, axis=-1, keepdims=True)
        return centered / jnp.sqrt(variance + 1e-5) * scale + offset

    def sparse_categorical_crossentropy(labels: Any, logits: Any, from_logits: bool) -> Any:
        shifted = logits - jnp.max(logits, axis=-1, keepdims=True)
        picked = jnp.take_along_axis(shifted, labels[:, None], axis=-1)[:, 0]
        return jnp.mean(jnp.log(jnp.sum(jnp.exp(shifted), axis=-1)) - picked)

    def dot_product_attention(q: Any, k: Any, v: Any) -> Any:
        scores = jnp.matmul(q.transpose(0, 2, 1, 3), k.transpose(0, 2, 3, 1)) * q.shape[-1] ** -0.5
        return jnp.matmul(softmax(scores), v.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3)

    made = (softmax, gelu, layer_normalization, sparse_categorical_crossentropy, dot_product_attention)
    return {f.__name__: f for f in made}


def _native(engine: Bench, case: Case, operands: dict[str, Any]) -> Caller:
    return engine.native(case, operands)


def _ember(engine: Bench, case: Case, operands: dict[str, Any]) -> Caller:
    import ember_ml

    if not hasattr(ember_ml.ops, case.name):
        raise SkippedError(f"ember_ml.ops has no {case.name}")
    ember_ml.set_backend(engine.name)
    return Caller(f"f({case.arguments})", {"f": getattr(ember_ml.ops, case.name)})


def _autoray(engine: Bench, case: Case, operands: dict[str, Any]) -> Caller:
    return Caller(f"do({case.name!r}, {case.arguments})", {"do": _peer("autoray").do})


def _compat(engine: Bench, case: Case, operands: dict[str, Any]) -> Caller:
    namespace = _peer("array-api-compat").array_namespace(operands["x"])
    return Caller(f"f({case.arguments})", {"f": getattr(namespace, _standard_name(case))})


def _compat_lookup(engine: Bench, case: Case, operands: dict[str, Any]) -> Caller:
    find = _peer("array-api-compat").array_namespace
    return Caller(f"find({case.tensors}).{_standard_name(case)}({case.arguments})", {"find": find})


def _keras(engine: Bench, case: Case, operands: dict[str, Any]) -> Caller:
    return Caller(f"f({case.arguments})", {"f": getattr(_peer("keras").ops, case.name)})


def _standard_name(case: Case) -> str:
    return NAMES["array-api-compat"].get(case.name, case.name)


def _peer(distribution: str) -> Any:
    module = distribution.replace("-", "_")
    if find_spec(module) is None:
        raise SkippedError(f"{distribution} is not installed")
    return import_module(module)


KERAS, COMPOSED_WAY = "keras", "composed"

Ways: TypeAlias = dict[str, Callable[[Bench, Case, dict[str, Any]], Caller]]

HERE: Ways = {
    NATIVE: _native,
    EMBER: _ember,
    "autoray": _autoray,
    "compat": _compat,
    "compat look-up": _compat_lookup,
    AGAIN: _native,
}
BOTH: Ways = {NATIVE: _native, EMBER: _ember, AGAIN: _native}
THERE: dict[str, Ways] = {KERAS: {NATIVE: _native, KERAS: _keras}, EMBER: BOTH, COMPOSED_WAY: BOTH}

COLUMNS = [EMBER, "autoray", "compat", "compat look-up", KERAS]


class Plan(NamedTuple):
    """What to measure, and how thoroughly."""

    engines: list[str]
    cases: list[Case]
    sizes: list[int]
    repeats: int
    turn: float

    @property
    def length(self) -> int:
        return len(self.engines) * len(self.sizes) * len(self.cases)


def rows(plan: Plan, ways: Ways) -> Iterator[dict[str, Any]]:
    """One record per engine, size and case: the time of every way in microseconds, or why there is none."""
    for name in plan.engines:
        engine = Bench(name)
        for size in plan.sizes:
            operands = engine.operands(size)
            for case in plan.cases:
                timers, skipped = _timers(engine, case, size, operands, ways)
                us = medians(timers, plan.repeats, plan.turn, _evaluate_pending(engine, case, operands))
                row = {"engine": name, "size": size, "case": case.label, "us": us, "skipped": skipped}
                yield row | ({"compiled": engine.is_compiled(case, operands)} if name == "jax" else {})


def _timers(
    engine: Bench, case: Case, size: int, operands: dict[str, Any], ways: Ways
) -> tuple[dict[str, timeit.Timer], dict[str, str]]:
    """Timers of the ways whose result agrees with the native one, and the reasons why others are skipped."""
    expected = _native(engine, case, operands).result(operands)
    finish = engine.finish_for(case, size)
    made = {way: partial(caller_of, engine, case, operands) for way, caller_of in ways.items()}
    callers, skipped = working(made, operands, lambda found: agree(found, expected))
    return {way: caller.timer(operands, finish) for way, caller in callers.items()}, skipped


def _evaluate_pending(engine: Bench, case: Case, operands: dict[str, Any]) -> Callable[[], Any]:
    """Function to call between turns, which makes a lazy engine evaluate pending results."""
    finish, native = engine.finish, _native(engine, case, operands)
    return (lambda: None) if finish is None else lambda: finish(native.result(operands))


def worker_rows(plan: Plan, way: str, environment: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Rows measured for ``way`` in a separate process; raises SkippedError if it fails."""
    plan_json = {**plan._asdict(), "cases": [case.label for case in plan.cases], "way": way}
    with tempfile.TemporaryFile("w+") as errors:
        worker = subprocess.Popen(
            [sys.executable, __file__, "--worker", json.dumps(plan_json)],
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        assert worker.stdout is not None
        with worker.stdout:
            for line in worker.stdout:
                yield json.loads(line)
        if worker.wait():
            errors.seek(0)
            last = (errors.read().strip().splitlines() or ["it ended without a message"])[-1]
            raise SkippedError(last)


def work(plan_json: str) -> None:
    """Run as a worker process, which prints one record per line."""
    asked = json.loads(plan_json)
    way = asked.pop("way")
    if way == KERAS:
        import_module("keras")
    elif way == EMBER and os.environ["EMBER_ML_PURE_PYTHON"] == "" and find_spec("ember_ml.dispatch._fast") is None:
        sys.exit("the C extension of dispatch is not built")
    asked["cases"] = [case for case in (*PANEL, *COMPOSED) if case.label in asked["cases"]]
    for row in rows(Plan(**asked), THERE[way]):
        print(json.dumps(row), flush=True)


def keras_rows(plan: Plan, engine: str) -> Iterator[dict[str, Any]]:
    """The rows of one engine with Keras, whose backend is fixed at import; raises SkippedError if it does not start."""
    if find_spec("keras") is None:
        raise SkippedError("keras is not installed")
    with tempfile.TemporaryDirectory() as home:
        try:
            environment = {"KERAS_BACKEND": engine, "KERAS_HOME": home}
            yield from worker_rows(plan._replace(engines=[engine]), KERAS, environment)
        except SkippedError as reason:
            raise SkippedError(f"keras does not start on {engine}: {reason}") from reason


def target_rows(
    plan: Plan, runs: int, advance: Callable[[str, float], None]
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The operations of the targets, measured in ``runs`` processes of each speed in turn; why a speed is left out.

    A record per speed, engine, size and operation has the ratio of every run.
    """
    plan = plan._replace(cases=target_cases(plan))
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    skipped: dict[str, str] = {}
    for _ in range(runs):
        for speed, environment in SPEEDS.items():
            advance(f"the targets, {speed}", plan.length)
            try:
                for row in worker_rows(plan, EMBER, environment):
                    place = (speed, row["engine"], row["size"], row["case"])
                    record = dict(zip(("speed", "engine", "size", "case"), place, strict=True))
                    kept = found.setdefault(place, {**record, "ratios": [], "again": []})
                    kept["ratios"].append(row["us"][EMBER] / row["us"][NATIVE])
                    kept["again"].append(row["us"][AGAIN] / row["us"][NATIVE])
            except SkippedError as reason:
                skipped[speed] = str(reason)
    return list(found.values()), skipped


def composed_rows(plan: Plan, runs: int, advance: Callable[[str, float], None]) -> list[dict[str, Any]]:
    """Composed operations on JAX, measured in ``runs`` processes: a record per operation has the ratio of every run."""
    found: list[dict[str, Any]] = [
        {"engine": "jax", "case": case.label, "native_us": [], "ratios": [], "again": [], "skipped": {}}
        for case in plan.cases
    ]
    for _ in range(runs):
        advance("composed operations on jax", plan.length)
        try:
            for kept, row in zip(found, worker_rows(plan, COMPOSED_WAY, {}), strict=True):
                us = row["us"]
                kept["skipped"] |= row["skipped"]
                if EMBER in us:
                    kept["native_us"].append(us[NATIVE])
                    kept["ratios"].append(us[EMBER] / us[NATIVE])
                    kept["again"].append(us[AGAIN] / us[NATIVE])
        except SkippedError as reason:
            for kept in found:
                kept["skipped"].setdefault(EMBER, str(reason))
    for kept in found:
        if kept["ratios"]:
            ratio = statistics.median(kept["ratios"])
            kept |= {"ratio": ratio, "target": TARGET_COMPOSED, "met": ratio <= TARGET_COMPOSED}
    return found


def target_cases(plan: Plan) -> list[Case]:
    """The cases that the targets are about: of the ten operations, each without a scalar."""
    return [case for case in plan.cases if case.name in TEN and not case.scalar]


def measure(plan: Plan, advance: Callable[[str, float], None]) -> list[dict[str, Any]]:
    """All rows, with ratios to the native call of the same process; ``advance`` is called with the progress."""
    found: list[dict[str, Any]] = []
    for row in rows(plan, HERE):
        native = row["us"][NATIVE]
        row["ratios"] = {way: time / native for way, time in row["us"].items() if way != NATIVE}
        found.append(row)
        advance(f"{row['engine']}, {row['size']:,} elements", 1)
    places = {(row["engine"], row["size"], row["case"]): row for row in found}
    for engine in plan.engines:
        mine = [row for row in found if row["engine"] == engine]
        done = 0
        try:
            for row in keras_rows(plan, engine):
                place = places[engine, row["size"], row["case"]]
                if KERAS in row["us"]:
                    place["us"][KERAS] = row["us"][KERAS]
                    place["ratios"][KERAS] = row["us"][KERAS] / row["us"][NATIVE]
                place["skipped"].update(row["skipped"])
                done += 1
                advance(f"keras on {engine}, {row['size']:,} elements", 1)
        except SkippedError as reason:
            for row in mine:
                row["skipped"].setdefault(KERAS, str(reason))
        advance(f"keras on {engine}", len(mine) - done)
    return found


def means(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Geometric means of the ratios, per engine and size."""
    results = []
    for engine, size in dict.fromkeys((row["engine"], row["size"]) for row in found):
        ratios = {way: statistics.geometric_mean(all_of) for way, all_of in _ratios(found, engine, size).items()}
        results.append({"engine": engine, "size": size, "ratios": ratios})
    return results


def _ratios(found: list[dict[str, Any]], engine: str, size: int) -> dict[str, list[float]]:
    ratios: dict[str, list[float]] = {}
    for row in found:
        if (row["engine"], row["size"]) == (engine, size):
            for way, ratio in row["ratios"].items():
                ratios.setdefault(way, []).append(ratio)
    return ratios


def verdicts(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every target of the runs: the median of their geometric means, the most it may be, and whether it is met."""
    results = []
    for speed, engine, size in dict.fromkeys((row["speed"], row["engine"], row["size"]) for row in found):
        mine = [row for row in found if (row["speed"], row["engine"], row["size"]) == (speed, engine, size)]
        per_run = zip(*(row["ratios"] for row in mine), strict=True)
        ratio = statistics.median(map(statistics.geometric_mean, per_run))
        if size >= LARGE:
            target: float | None = TARGET_LARGE
        else:
            target = TARGETS[speed].get(engine) if size <= SMALL else None
        if target is not None:
            place = {"speed": speed, "engine": engine, "size": size, "operations": len(mine)}
            results.append({**place, "ratio": ratio, "target": target, "met": ratio <= target})
    return results


def show(
    found: list[dict[str, Any]],
    targets: list[dict[str, Any]],
    skipped: dict[str, str],
    composed: list[dict[str, Any]],
    console: Any,
) -> None:
    """Tables, geometric means, what was skipped, and whether the targets are met."""
    for mean in means(found):
        console.print(_table(found, mean))
        console.print(trust(_ratios(found, mean["engine"], mean["size"])[AGAIN]), style="dim")
        console.print()
    for line in skipped_lines(found):
        console.print(line, style="dim", highlight=False, soft_wrap=True)
    for size in dict.fromkeys(row["size"] for row in targets):
        console.print(_target_table(targets, size))
        again = [statistics.median(row["again"]) for row in targets if row["size"] == size]
        console.print(trust(again), style="dim")
        console.print()
    for speed, reason in skipped.items():
        console.print(f"Skipped: the targets with {speed}: {reason}", style="dim", highlight=False, soft_wrap=True)
    timed = [row for row in composed if row["ratios"]]
    if timed:
        console.print(_composed_table(timed))
        console.print(trust([statistics.median(row["again"]) for row in timed]), style="dim")
        console.print()
    for line in skipped_lines(composed):
        console.print(line, style="dim", highlight=False, soft_wrap=True)
    for v in verdicts(targets):
        color, word = ("green", "met") if v["met"] else ("red", "missed")
        text = f"{v['speed']}, {v['size']:,} elements, {v['operations']} operations: {v['ratio']:.3f}x"
        line = f"[bold]{v['engine']}[/], {text} (target {v['target']:.2f}x, [{color}]{word}[/])"
        console.print(line, highlight=False, soft_wrap=True)
    if timed:
        worst = max(timed, key=lambda row: row["ratio"])
        color, word = ("green", "met") if worst["met"] else ("red", "missed")
        text = f"{len(timed)} composed operations: at most {worst['ratio']:.3f}x, for {worst['case'].partition('(')[0]}"
        line = f"[bold]jax[/], {text} (target {worst['target']:.2f}x, [{color}]{word}[/])"
        console.print(line, highlight=False, soft_wrap=True)


def _composed_table(timed: list[dict[str, Any]]) -> Any:
    """The median ratio of every composed operation."""
    made = table(f"jax, ember_ml / the formula in jnp, median of {len(timed[0]['ratios'])} runs")
    made.add_column("operation", no_wrap=True)
    for column in ("native us", EMBER):
        made.add_column(column, justify="right", no_wrap=True)
    for row in timed:
        name = row["case"].partition("(")[0]
        made.add_row(name, f"{statistics.median(row['native_us']):.1f}", f"{row['ratio']:.3f}x")
    made.add_section()
    made.add_row("geometric mean", "", f"{statistics.geometric_mean(row['ratio'] for row in timed):.3f}x")
    return made


def _target_table(targets: list[dict[str, Any]], size: int) -> Any:
    """The median ratio of every operation of the targets, a column per engine and speed."""
    mine = [row for row in targets if row["size"] == size]
    made = table(f"ember_ml / native, {size:,} elements, median of {len(mine[0]['ratios'])} runs")
    made.add_column("call", no_wrap=True)
    columns = list(dict.fromkeys((row["engine"], row["speed"]) for row in mine))
    for engine, speed in columns:
        made.add_column(f"{engine}\n{speed}", justify="right")
    ratios = {(row["case"], row["engine"], row["speed"]): statistics.median(row["ratios"]) for row in mine}
    for case in dict.fromkeys(row["case"] for row in mine):
        some = (ratios.get((case, *column)) for column in columns)
        made.add_row(case, *("-" if ratio is None else f"{ratio:.3f}x" for ratio in some))
    return made


def _table(found: list[dict[str, Any]], mean: dict[str, Any]) -> Any:
    engine, size = mean["engine"], mean["size"]
    mine = [row for row in found if (row["engine"], row["size"]) == (engine, size)]
    columns = [way for way in COLUMNS if way in mean["ratios"]]
    lazily = ", building the graph" if engine == "mlx" and size < EVALUATED_FROM else ""
    made = table(f"{engine}, {size:,} elements{lazily}")
    made.add_column("call", no_wrap=True)
    made.add_column("native us", justify="right", no_wrap=True)
    for way in columns:
        made.add_column(way, justify="right", style="bold" if way == EMBER else "")
    for row in mine:
        ratios = (times(row["ratios"][way]) if way in row["ratios"] else "-" for way in columns)
        made.add_row(row["case"], f"{row['us'][NATIVE]:.3f}", *ratios)
    made.add_section()
    made.add_row("geometric mean", "", *(times(mean["ratios"][way]) for way in columns))
    return made


def plot(found: list[dict[str, Any]], path: str) -> None:
    """Bars of the ratios: a row of panels per engine, a column per size, a line at the target of the mean."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    engines, sizes = (list(dict.fromkeys(row[key] for row in found)) for key in ("engine", "size"))
    cases = len({row["case"] for row in found})
    extent = (1 + len(sizes) * (0.6 + 0.36 * max(cases, 8)), 0.8 + 3 * len(engines))
    figure, panels = pyplot.subplots(len(engines), len(sizes), figsize=extent, squeeze=False, layout="constrained")
    for i, engine in enumerate(engines):
        for j, size in enumerate(sizes):
            mine = [row for row in found if (row["engine"], row["size"]) == (engine, size)]
            many = size >= LARGE
            target = TARGET_LARGE if many else TARGETS[EXTENSION].get(engine)
            _panel(panels[i][j], mine, target, 1.5 if many else 8.5)
            panels[i][j].set_title(f"{engine}, {size:,} elements", loc="left", fontweight="bold", pad=18)
        panels[i][0].set_ylabel("time / native time")
    save_figure(figure, panels, path)


def _panel(axes: Any, mine: list[dict[str, Any]], target: float | None, top: float) -> None:
    """The bars of one engine and size, and a line at the target."""
    colours = dict(zip(COLUMNS, ("#d1495b", "#9aa5b8", "#7fc4b8", "#30638e", "#edae49"), strict=True))
    ways = [way for way in COLUMNS if any(way in row["ratios"] for row in mine)]
    bars(axes, {way: [row["ratios"].get(way, math.nan) for row in mine] for way in ways}, colours, top)
    if target is not None:
        axes.axhline(target, color="#2a9d3a", linewidth=1.2, linestyle="--", label="target of the geometric mean")
    finish_bars(axes, [row["case"] for row in mine], top)


def arguments(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="examples:\n"
        "  python benchmarks/dispatch.py                             all engines, about three minutes\n"
        "  python benchmarks/dispatch.py --quick --engines torch     a first impression\n"
        "  python benchmarks/dispatch.py --ops add sqrt --sizes 4    two operations, small tensors\n"
        "  python benchmarks/dispatch.py --json - > figures.json     for machines; tables go to stderr\n"
        "  python benchmarks/dispatch.py --plot dispatch.png         bars of the ratios",
    )
    add = parser.add_argument
    add_options(parser, list(dict.fromkeys(case.name for case in (*PANEL, *COMPOSED))), 101, 15)
    add("--sizes", nargs="+", type=positive, default=[SMALL, LARGE], metavar="N", help="elements (default: 4 100000)")
    add("--runs", type=positive, default=5, metavar="N", help="runs that a target is the median of (default: 5)")
    add("--worker", help=argparse.SUPPRESS)
    return parsed(parser, given)


def main(given: list[str] | None = None) -> None:
    options = arguments(given)
    if options.worker:
        work(options.worker)
        return
    stage = Stage.of(options)
    cases = [case for case in PANEL if case.name in options.ops]
    repeats = options.repeats or (15 if options.quick else 101)
    plan = Plan(options.engines, cases, options.sizes, repeats, TURN)
    composed_cases = [case for case in COMPOSED if case.name in options.ops and "jax" in plan.engines]
    composed_plan = Plan(["jax"], composed_cases, [COMPOSED_SIZE], repeats, TURN)
    where = setting("autoray", "array-api-compat", "keras")
    stage.introduce(where)
    steps = 2 * plan.length + options.runs * len(SPEEDS) * plan._replace(cases=target_cases(plan)).length
    with stage.show_progress(steps + options.runs * composed_plan.length) as advance:
        found = measure(plan, advance) if cases else []
        targets, skipped = target_rows(plan, options.runs, advance) if cases else ([], {})
        composed = composed_rows(composed_plan, options.runs, advance) if composed_cases else []
    show(found, targets, skipped, composed, stage.results)
    report = {"repeats": plan.repeats, "rows": found, "geometric_means": means(found)}
    report |= {"runs": targets, "runs_skipped": skipped, "targets": verdicts(targets), "composed": composed}
    write({**where, **report}, options.json)
    if options.plot and found:
        plot(found, options.plot)


if __name__ == "__main__":
    main()
