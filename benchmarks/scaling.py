"""The cost of data-parallel training on 8 to 4,096 ranks, on paper: bytes, latency, jitter, failures.

A step computes for ``--compute`` milliseconds and averages the gradients in buckets. An all-reduce of S bytes takes,
with n ranks, a latency a and a bandwidth b:

    ring   2 (n - 1) (a + S / (n b))       each rank sends 2 S (n - 1) / n bytes
    tree   2 log2(n) a + 2 S / b           two binary trees, each with half of the bytes

Both are simulated message by message, with latencies that vary (``--jitter``): a rank sends a part when it and its
neighbor have the one before. Buckets are reduced while the backward pass, two thirds of the computation, goes on; the
last one cannot be. Before, the ranks compare what they call: a ring of n - 1 small messages. A rank fails once in
``--mtbf`` hours; the checkpoint interval is the best one, and a failure costs half of it and a restart.

No figure here was measured on a cluster. The defaults are a GPT of 350 million parameters in bfloat16, and hosts of
eight ranks with 400 Gb/s.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from typing import NamedTuple

import numpy as np

RANKS = (8, 32, 128, 512, 1024, 2048, 4096)

HEADER_BYTES = 192


class Machine(NamedTuple):
    """What a cluster and a model are: seconds, bytes, and bytes per second."""

    gradient_bytes: float
    bucket_bytes: float
    compute: float
    latency: float
    bandwidth: float
    jitter: float
    mtbf: float
    checkpoint: float
    restart: float


def ring_time(n: int, size: float, machine: Machine, rng: np.random.Generator) -> float:
    """Seconds until the last rank has the sum: each of 2 (n - 1) steps waits for the neighbor's step before."""
    times = np.zeros(n)
    part = size / n / machine.bandwidth
    for _ in range(2 * (n - 1)):
        times = np.maximum(times, np.roll(times, 1)) + latencies(n, machine, rng) + part
    return float(times.max())


def tree_time(n: int, size: float, machine: Machine, rng: np.random.Generator) -> float:
    """Seconds up and down a binary tree, whose levels forward the parts of a bucket as they come."""
    levels = math.ceil(math.log2(n))
    # The slowest of the messages of a level holds up the one above.
    waits = sum(latencies(2**level, machine, rng).max() for level in range(levels))
    return float(2 * waits + 2 * size / machine.bandwidth)


def latencies(n: int, machine: Machine, rng: np.random.Generator) -> np.ndarray:
    """Latencies of n messages: lognormal, with ``latency`` as their median."""
    return machine.latency * rng.lognormal(0.0, machine.jitter, n)


def header_time(n: int, machine: Machine, rng: np.random.Generator) -> float:
    """Seconds to gather what each rank calls, around a ring."""
    times = np.zeros(n)
    for _ in range(n - 1):
        times = np.maximum(times, np.roll(times, 1)) + latencies(n, machine, rng) + HEADER_BYTES / machine.bandwidth
    return float(times.max())


def figures(n: int, machine: Machine, checked: bool, seed: int = 0) -> dict[str, float]:
    """Times of a step in seconds, and the part of the time that n ranks spend on useful computation."""
    rng = np.random.default_rng(seed)
    buckets = max(1, math.ceil(machine.gradient_bytes / machine.bucket_bytes))
    size = machine.gradient_bytes / buckets
    ring, tree = ring_time(n, size, machine, rng), tree_time(n, size, machine, rng)
    header = header_time(n, machine, rng) if checked else 0.0
    last, hidden = min(ring, tree), 2 / 3 * machine.compute
    exposed = header + last + max(0.0, (buckets - 1) * last - hidden)
    step = machine.compute + exposed
    between = machine.mtbf / n
    interval = math.sqrt(2 * machine.checkpoint * between)
    lost = machine.checkpoint / interval + interval / (2 * between) + machine.restart / between
    return {
        "ranks": n,
        "sent_bytes": 2 * machine.gradient_bytes * (n - 1) / n,
        "ring": buckets * ring,
        "tree": buckets * tree,
        "header": header,
        "step": step,
        "efficiency": machine.compute / step,
        "hours_between_failures": between / 3600,
        "checkpoint_minutes": interval / 60,
        "goodput": machine.compute / step * max(0.0, 1 - lost),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="+", default=RANKS)
    parser.add_argument("--parameters", type=float, default=350e6)
    parser.add_argument("--bytes", type=float, default=2, help="of a gradient's element (default: 2)")
    parser.add_argument("--bucket", type=float, default=32e6, help="bytes of a bucket (default: 32e6)")
    parser.add_argument("--compute", type=float, default=250, help="milliseconds of a step (default: 250)")
    parser.add_argument("--latency", type=float, default=10, help="microseconds of a message (default: 10)")
    parser.add_argument("--bandwidth", type=float, default=50, help="Gb/s of a rank (default: 50, an eighth of 400)")
    parser.add_argument("--jitter", type=float, default=0.3, help="sigma of the logarithm of a latency (default: 0.3)")
    parser.add_argument("--mtbf", type=float, default=50_000, help="hours between failures of a rank (default: 50000)")
    parser.add_argument("--checkpoint", type=float, default=10, help="seconds to write a checkpoint (default: 10)")
    parser.add_argument("--restart", type=float, default=120, help="seconds to start all ranks again (default: 120)")
    parser.add_argument("--unchecked", action="store_true", help="without the comparison of calls")
    parser.add_argument("--json", action="store_true", help="print the figures for machines")
    parser.add_argument("--plot", metavar="FILE", help="draw the efficiency over the number of ranks")
    options = parser.parse_args()
    if min(options.ranks) < 2:
        parser.error(f"argument --ranks: the numbers must be >= 2, got {min(options.ranks)}")
    machine = Machine(
        options.parameters * options.bytes,
        options.bucket,
        options.compute / 1e3,
        options.latency / 1e6,
        options.bandwidth * 1e9 / 8,
        options.jitter,
        options.mtbf * 3600,
        options.checkpoint,
        options.restart,
    )
    rows = [figures(n, machine, not options.unchecked) for n in options.ranks]
    if options.json:
        print(json.dumps(rows, indent=1))
    else:
        print(" ranks  GB sent  ring ms  tree ms  header ms  step ms  efficiency  h to failure  goodput")
        for row in rows:
            times = "".join(f"{row[name] * 1e3:>{width}.1f}" for name, width in WIDTHS.items())
            print(
                f"{row['ranks']:>6} {row['sent_bytes'] / 1e9:>8.2f} {times} {row['efficiency']:>11.1%} "
                f"{row['hours_between_failures']:>13.1f} {row['goodput']:>8.1%}"
            )
    if options.plot:
        draw(rows, options.plot)
    return 0


WIDTHS = {"ring": 8, "tree": 9, "header": 11, "step": 9}


def draw(rows: list[dict[str, float]], path: str) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    ranks = [row["ranks"] for row in rows]
    figure, axes = pyplot.subplots()
    for name in ("efficiency", "goodput"):
        axes.plot(ranks, [row[name] for row in rows], marker="o", label=name)
    axes.set(xscale="log", xlabel="ranks", ylabel="part of the time", ylim=(0, 1.05), title="Scaling on paper")
    axes.legend()
    figure.savefig(path)


if __name__ == "__main__":
    sys.exit(main())
