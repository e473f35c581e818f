"""What each rank of the tests of distributed training runs; rank 0 prints the results as JSON.

The program is also imported, to run the same in the process of a test.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import environment  # noqa: F401 - variables that engines read when they are imported
import numpy as np

from ember_ml import distributed, nn, ops, optim, training

RANDOM = np.random.default_rng(0)
# The last batch of an epoch has three examples, fewer than four ranks.
COUNT, BATCH = 67, 32
POINTS = RANDOM.standard_normal((COUNT, 6)).astype(np.float32)
HEIGHTS = np.sin(POINTS[:, :1])
IMAGES = RANDOM.standard_normal((COUNT, 6, 6, 1)).astype(np.float32)
LABELS = (IMAGES.mean((1, 2, 3)) > 0).astype(np.int64)
SEQUENCES = RANDOM.standard_normal((COUNT, 5, 8)).astype(np.float32)
SUMS = SEQUENCES[:, :1, :1].sum((1, 2))[:, None]
WEIGHTS = RANDOM.uniform(0.0, 2.0, COUNT).astype(np.float32)


class Transformer(nn.Module):
    def __init__(self) -> None:
        self.encoder = nn.TransformerEncoder(1, 8, 2, 16, 0.2)
        self.out = nn.Linear(8, 1)

    def forward(self, x: Any) -> Any:
        return self.out(ops.mean(self.encoder(x), axis=1))


def perceptron() -> Any:
    return nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))


def convolutional() -> Any:
    # The gradient of a bias before BatchNorm is rounding error, which Adam would magnify.
    return nn.Sequential(nn.Conv2d(1, 4, 3, bias=False), nn.BatchNorm(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 2))


CROSSENTROPY = partial(ops.sparse_categorical_crossentropy, from_logits=True)

# Model, loss, metrics, examples and targets.
TASKS: dict[str, tuple[Any, ...]] = {
    "perceptron": (perceptron, "mse", ["mae"], POINTS, HEIGHTS),
    "convolutional": (convolutional, CROSSENTROPY, ["accuracy"], IMAGES, LABELS),
    "transformer": (Transformer, "mse", ["mae"], SEQUENCES, SUMS),
}


def trainer_of(name: str, callbacks: Any = (), **options: Any) -> Any:
    model, loss, metrics, *_ = TASKS[name]
    ops.random.set_seed(3)
    return training.Trainer(model(), loss, optim.Adam(0.01, clip_norm=1.0), metrics, callbacks, **options)


def curve(
    name: str,
    steps: int,
    folder: str | None = None,
    save_at: int | None = None,
    fit: dict[str, Any] | None = None,
    is_weighted: bool = False,
    is_iterated: bool = False,
    **options: Any,
) -> dict[str, Any]:
    """Losses of each step and figures of each epoch of a run, which may resume from a folder or save to it."""
    *_, x, y = TASKS[name]
    data: tuple[Any, ...] = (x, y)
    extra = dict(fit or {})
    if is_weighted:
        extra["sample_weight"] = WEIGHTS
    if is_iterated:
        data = ([(x[i : i + BATCH], y[i : i + BATCH]) for i in range(0, COUNT, BATCH)],)
    callbacks = [] if save_at is None else [training.Checkpoint(folder, every=save_at)]
    trainer = trainer_of(name, callbacks, **options)
    validation = (x[:30], y[:30])
    history = trainer.fit(
        *data,
        batch_size=BATCH,
        max_steps=steps,
        validation_data=validation,
        resume=folder if save_at is None else None,
        **extra,
    )
    figures = {key: history[key] for key in history.names() if key != "seconds"}
    return {"steps": history.steps, **figures}


def main(jobs: list[dict[str, Any]]) -> None:
    results = [curve(**job) for job in jobs]
    sizes = distributed.rank(), distributed.size()
    if sizes[0] == 0:
        print("RESULT" + json.dumps({"size": sizes[1], "results": results}))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def launch(engine: str, size: int, jobs: list[dict[str, Any]], timeout: float = 120) -> list[Any]:
    """Results of jobs on that many ranks."""
    outputs = run_ranks(engine, size, [str(Path(__file__)), json.dumps(jobs)], timeout)
    for code, out, error in outputs:
        assert code == 0, f"{out}\n{error}"
    line = next(line for line in outputs[0][1].splitlines() if line.startswith("RESULT"))
    found = json.loads(line.removeprefix("RESULT"))
    assert found["size"] == size
    # Rank 0 alone prints, except for gloo.
    assert all(line.startswith("[Gloo]") for _, out, _ in outputs[1:] for line in out.splitlines())
    return list(found["results"])


def run_ranks(engine: str, size: int, arguments: list[str], timeout: float = 120) -> list[tuple[int, str, str]]:
    """Exit code, output and errors of each rank of a program."""
    common = {
        **os.environ,
        "WORLD_SIZE": str(size),
        "MASTER_PORT": str(free_port()),
        "EMBER_ML_BACKEND": engine,
        "EMBER_ML_DEVICE": "cpu",
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent.parent), str(Path(__file__).parent)]),
    }
    processes = [
        subprocess.Popen(
            [sys.executable, *arguments],
            env={**common, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(size)
    ]
    try:
        pairs = [process.communicate(timeout=timeout) for process in processes]
        return [(process.returncode, *pair) for process, pair in zip(processes, pairs, strict=True)]
    finally:
        for process in processes:
            process.kill()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
