"""The cost of ``ember_ml.distributed`` on two processes: against the transport itself, and against torch's own DDP.

``average_gradients`` of 25 million float32 parameters is measured against the engine's all-reduce of one tensor of as
many bytes; a training step on torch against ``DistributedDataParallel`` with the same model, optimizer and batches; and
a collective of four elements with and without the comparison of what the ranks call.

Both ways take turns in the same two processes. A figure is the median over all turns on rank 0, a ratio the median of
the ratios of each turn.

``--alone`` measures a step on torch in one process that is started as the only rank of a launch, with a process group
(NCCL with ``--device cuda``, gloo on the CPU), against one that is started without a launch. Two processes take turns.

The targets: at most 1.10 times the all-reduce, 1.05 times the step of DDP, and 1.03 times the step without a launch.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

ENGINES = ("torch", "numpy", "mlx", "jax")

TARGETS = {"average_gradients": 1.10, "step": 1.05, "step of one rank": 1.03}

# Steps in a turn.
STEPS = 40

# 25 million parameters: 12 layers of 1,020 features with their biases, and 2 wide ones.
SHAPES = [shape for _ in range(12) for shape in ((1020, 1020), (1020,), (1020, 1020), (1020,))] + [(3, 1020), (10,)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=ENGINES)
    parser.add_argument("--turns", type=int, default=20, help="how often each way is measured (default: 20)")
    parser.add_argument("--scale", type=float, default=1.0, help="fraction of the parameters (default: 1)")
    parser.add_argument("--ranks", type=int, default=2, help="how many processes (default: 2)")
    parser.add_argument("--alone", action="store_true", help="measure one rank instead")
    parser.add_argument("--device", default="cpu", help="device of --alone (default: cpu)")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", help="print the figures for machines")
    options = parser.parse_args()
    if options.serve:
        serve(options)
        return 0
    if "RANK" in os.environ:
        measure(options)
        return 0
    if options.alone:
        figures = [alone(options)]
    else:
        figures = [figure for engine in options.engines for figure in started(engine, options)]
    if options.json:
        print(json.dumps(figures, indent=1))
        return 0
    print(f"{'engine':<7} {'measured':<18} {'native ms':>10} {'ember_ml ms':>12} {'ratio':>6}  target")
    for figure in figures:
        target = TARGETS.get(figure["what"])
        verdict = "-" if target is None else f"{target:.2f} {'met' if figure['ratio'] <= target else 'missed'}"
        times = f"{figure['native'] * 1e3:>10.2f} {figure['ember_ml'] * 1e3:>12.2f} {figure['ratio']:>6.2f}"
        print(f"{figure['engine']:<7} {figure['what']:<18} {times}  {verdict}")
    return 0


def started(engine: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Figures that a launch of this file prints."""
    command = [sys.executable, "-m", "ember_ml", "launch", "-n", str(options.ranks), "--backend", engine, __file__]
    command += ["--engines", engine, "--turns", str(options.turns), "--scale", str(options.scale)]
    done = subprocess.run(
        command, env={**os.environ, "OMP_NUM_THREADS": "1"}, stdout=subprocess.PIPE, text=True, check=True
    )
    return [json.loads(text) for text in re.findall(r"\[0\] (\{.*)", done.stdout)]


def measure(options: argparse.Namespace) -> None:
    from ember_ml import distributed, ops

    (engine,) = options.engines
    distributed.init(timeout=120)
    sizes = [tuple(max(1, round(n * options.scale**0.5)) for n in shape) for shape in SHAPES]
    tree = {str(i): ops.ones(shape) * (distributed.rank() + 1) for i, shape in enumerate(sizes)}
    flat = ops.concat([ops.ravel(x) for x in tree.values()])
    raw, finish = transport(engine)
    report(
        options,
        "average_gradients",
        lambda: finish(raw(flat)),
        lambda: finish(list(distributed.average_gradients(tree).values())),
    )
    few = ops.ones(4)
    report(options, "checked all_sum", lambda: unchecked(few), lambda: ops.all_sum(few))
    if engine == "torch":
        report(options, "step", *steps(options.scale))


def unchecked(x: Any) -> None:
    """A collective without the comparison of calls."""
    from ember_ml import distributed, ops

    distributed.init(checked=False)
    ops.all_sum(x)
    distributed.init(checked=True)


def transport(engine: str) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """All-reduce of the engine itself, and what waits for results."""
    if engine in ("torch", "numpy"):
        import torch
        import torch.distributed as dist

        # It writes to its argument, which is how its users call it.
        return lambda x: dist.all_reduce(torch.as_tensor(x)), lambda x: x
    if engine == "mlx":
        import mlx.core as mx

        return mx.distributed.all_sum, mx.eval
    import jax
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    size = jax.process_count()
    mesh = Mesh([jax.local_devices(i)[0] for i in range(size)], ("ranks",))
    spread, whole = NamedSharding(mesh, PartitionSpec("ranks")), NamedSharding(mesh, PartitionSpec())
    total = jax.jit(lambda x: x.reshape(size, -1).sum(0), out_shardings=whole)

    def reduce(x: Any) -> Any:
        return total(jax.make_array_from_single_device_arrays((size * x.size,), spread, [x]))

    return reduce, jax.block_until_ready


def steps(scale: float) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Turns of DDP and of the Trainer: an MLP with SGD and the same batch on each rank."""
    import torch
    from torch.nn.parallel import DistributedDataParallel

    x, y, sizes = problem(scale)
    layers: list[Any] = []
    for fan_in, fan_out in pairwise(sizes):
        layers += [torch.nn.Linear(fan_in, fan_out), torch.nn.ReLU()]
    native = DistributedDataParallel(torch.nn.Sequential(*layers[:-1]))
    optimizer = torch.optim.SGD(native.parameters(), 1e-3)
    rank, size = torch.distributed.get_rank(), torch.distributed.get_world_size()
    own = slice(rank * len(x) // size, (rank + 1) * len(x) // size)

    def turn() -> None:
        for _ in range(STEPS):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(native(x[own]), y[own]).backward()
            optimizer.step()

    return turn, trainer_turn(scale)


def problem(scale: float) -> tuple[Any, Any, list[int]]:
    """A batch, and the sizes of the layers of a model for it."""
    import torch

    from ember_ml import ops

    torch.set_num_threads(1)
    features, batch = round(1024 * scale**0.5), 64
    ops.random.set_seed(0)
    return ops.random.normal((batch, features)), ops.random.randint((batch,), 0, 10), [features] * 6 + [10]


def trainer_turn(scale: float) -> Callable[[], Any]:
    """Steps of the Trainer. Beginning and ending ``fit`` is no part of a step, so there are many."""
    from ember_ml import nn, ops, optim
    from ember_ml.training import Trainer

    x, y, sizes = problem(scale)
    layers: list[Any] = []
    for fan_in, fan_out in pairwise(sizes):
        layers += [nn.modules.Linear(fan_in, fan_out), nn.modules.ReLU()]
    loss = partial(ops.sparse_categorical_crossentropy, from_logits=True)
    trainer = Trainer(nn.modules.Sequential(*layers[:-1]), loss, optim.SGD(1e-3))
    batches = [(x, y)] * STEPS
    return lambda: trainer.fit(batches, verbose=0)


def alone(options: argparse.Namespace) -> dict[str, Any]:
    """Figure of one rank, against a process without a launch."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    launched = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    command = [sys.executable, __file__, "--serve", "--scale", str(options.scale), "--device", options.device]
    settings = {**os.environ, "OMP_NUM_THREADS": "1", "EMBER_ML_BACKEND": "torch", "EMBER_ML_DEVICE": options.device}
    processes = [
        subprocess.Popen(command, env={**settings, **more}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for more in ({}, launched)
    ]

    def once(process: subprocess.Popen[str]) -> float:
        assert process.stdin is not None
        assert process.stdout is not None
        print(file=process.stdin, flush=True)
        return float(process.stdout.readline())

    for process in processes * 2:
        once(process)
    turns = [[once(process) for process in processes] for _ in range(options.turns)]
    for process in processes:
        process.communicate()
    return figure_of("torch", "step of one rank", turns)


def serve(options: argparse.Namespace) -> None:
    """Print the seconds of a turn of steps for each line of the input."""
    import torch

    from ember_ml import distributed, ops

    if "RANK" in os.environ:
        torch.distributed.init_process_group("nccl" if options.device.startswith("cuda") else "gloo")
        distributed.init()
    turn = trainer_turn(options.scale)
    for _ in sys.stdin:
        begun = time.perf_counter()
        turn()
        ops.synchronize()
        print(time.perf_counter() - begun, flush=True)
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def report(options: argparse.Namespace, what: str, native: Callable[[], Any], ours: Callable[[], Any]) -> None:
    """Measure two ways in turns, and print their medians on rank 0."""
    from ember_ml import distributed

    def once(way: Callable[[], Any]) -> float:
        distributed.barrier()
        begun = time.perf_counter()
        way()
        return time.perf_counter() - begun

    for way in (native, ours) * 2:
        way()
    turns = [(once(native), once(ours)) for _ in range(options.turns)]
    if distributed.rank() == 0:
        print(json.dumps(figure_of(options.engines[0], what, turns)), flush=True)


def figure_of(engine: str, what: str, turns: Sequence[Sequence[float]]) -> dict[str, Any]:
    """Medians of the seconds of two ways that took turns, and of their ratios."""
    return {
        "engine": engine,
        "what": what,
        "native": statistics.median(a for a, _ in turns),
        "ember_ml": statistics.median(b for _, b in turns),
        "ratio": statistics.median(b / a for a, b in turns),
    }


if __name__ == "__main__":
    sys.exit(main())
