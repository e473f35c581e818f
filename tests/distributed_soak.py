"""Launches in a row, each with a rank killed at a random moment: none may hang, tear a checkpoint or change the curve.

Run by hand: ``python tests/distributed_soak.py --count 100 --seed 1``. It takes ten seconds a launch.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import ember_ml

# A launch and its restarts take less than half of this, on a busy machine.
LIMIT = 120.0

# Seconds in which the moment lies: the start of the processes, the connection, training, and the end.
SPAN = 6.0

PROGRAM = """
import json, os, sys, time
print("pid", os.getpid(), flush=True)
import numpy as np
from ember_ml import distributed, ops, optim
from ember_ml.nn.modules import Linear, ReLU, Sequential
from ember_ml.training import Callback, Checkpoint, Trainer

class Slow(Callback):
    def on_step_end(self, trainer, loss):
        time.sleep(0.02)

distributed.init(timeout=20)
ops.random.set_seed(3)
x = np.linspace(-1, 1, 64, dtype=np.float32).reshape(32, 2)
model = Sequential(Linear(2, 8), ReLU(), Linear(8, 1))
trainer = Trainer(model, "mse", optim.SGD(0.1), callbacks=[Checkpoint(sys.argv[1], every=3, keep=2), Slow()])
history = trainer.fit(x, x[:, :1] ** 2, epochs=20, batch_size=8, resume=sys.argv[1], verbose=0)
if distributed.rank() == 0:
    print("CURVE", json.dumps([float(loss) for loss in history["loss"]]), flush=True)
"""


class FindingError(Exception):
    """What a launch did that it must not."""


def launch(backend: str, ranks: int, moment: float | None, victim: int, restarts: int) -> tuple[list[float], int]:
    """Curve of a launch, and how often it was started again; a rank is killed at a moment, if there is one."""
    with tempfile.TemporaryDirectory() as folder:
        program, states = Path(folder, "program.py"), Path(folder, "states")
        program.write_text(PROGRAM)
        states.mkdir()
        command = [sys.executable, "-m", "ember_ml", "launch", "-n", str(ranks), "--backend", backend]
        process = subprocess.Popen(
            [*command, "--max-restarts", str(restarts), str(program), str(states)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        lines: list[str] = []
        reader = threading.Thread(target=lambda: lines.extend(process.stdout or ()), daemon=True)
        reader.start()
        if moment is not None:
            kill(lines, victim, moment)
        try:
            process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)
            process.wait(30)
            raise FindingError("the launch hangs") from None
        reader.join(10)
        text = "".join(lines)
        if process.returncode:
            raise FindingError(f"the launch has exit status {process.returncode}\n{text[-3000:]}")
        check(states)
        found = re.findall(r"\[0\] CURVE (.*)", text)
        if not found:
            raise FindingError(f"there is no curve\n{text[-3000:]}")
        curve: list[float] = json.loads(found[-1])
        return curve, text.count("starting all ranks again")


def kill(lines: Sequence[str], victim: int, moment: float) -> None:
    """Kill a rank so many seconds after its process has started, unless it has ended."""
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        found = [re.match(rf"\[{victim}\] pid (\d+)", line) for line in list(lines)]
        pids = [int(match[1]) for match in found if match]
        if pids:
            time.sleep(moment)
            with suppress(ProcessLookupError):  # it may have been quick
                os.kill(pids[0], signal.SIGKILL)
            return
        time.sleep(0.01)
    raise FindingError("no rank has started")


def check(states: Path) -> None:
    """Read every checkpoint, in this process."""
    files = sorted(states.iterdir())
    if not files:
        raise FindingError("there is no checkpoint")
    with ember_ml.use_backend("numpy"):
        for path in files:
            try:
                ember_ml.ops.load(path)
            except Exception as error:
                raise FindingError(f"{path.name} cannot be read: {error}") from error


def soak(count: int, seed: int, backends: Sequence[str]) -> int:
    """Number of problems."""
    rng = random.Random(seed)
    curves: dict[tuple[str, int], list[float]] = {}
    problems = restarts = 0
    for i in range(count):
        backend, ranks = backends[i % len(backends)], 2 + i % 2
        moment, victim = rng.uniform(0.0, SPAN), rng.randrange(ranks)
        case = f"launch {i} of {ranks} ranks on {backend}, rank {victim} killed after {moment:.2f} s"
        begun = time.monotonic()
        try:
            if (backend, ranks) not in curves:
                curves[backend, ranks] = launch(backend, ranks, None, 0, 0)[0]
            curve, again = launch(backend, ranks, moment, victim, 2)
            restarts += again
            difference = max(abs(a - b) for a, b in zip(curve, curves[backend, ranks], strict=True))
            if difference > 1e-5:
                raise FindingError(f"the curve differs by {difference}")
        except FindingError as problem:
            problems += 1
            print(f"FINDING in {case}: {problem}", flush=True)
        else:
            print(f"{case}: {again} restarts, {time.monotonic() - begun:.1f} s", flush=True)
    print(f"{count} launches, {restarts} restarts, {problems} findings")
    return problems


def main(arguments: Any = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--backend", nargs="+", default=ember_ml.get_available_backends())
    options = parser.parse_args(arguments)
    return 1 if soak(options.count, options.seed, options.backend) else 0


if __name__ == "__main__":
    sys.exit(main())
