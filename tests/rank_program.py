"""What each rank of the tests of distributed training runs; rank 0 prints the results as JSON.

The program is also imported, to run the same in the process of a test.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import environment  # noqa: F401 - variables that engines read when they are imported
import numpy as np
import pytest

from ember_ml import distributed, nn, ops, optim, training
from ember_ml.errors import DistributedError, UnsupportedError
from ember_ml.training.ranks import check_model, gather

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


def check_loss_that_is_not_a_number(folder: str) -> None:
    """One example is NaN, so one rank has it; all stop with the same message."""
    trainer = trainer_of("perceptron", training.FailOnNaN())
    x = np.where(np.arange(COUNT)[:, None] == 40, np.nan, POINTS)
    with pytest.raises(FloatingPointError, match="the loss of update 2 must be finite, got nan"):
        trainer.fit(x, HEIGHTS, batch_size=BATCH, shuffle=False, verbose=0)


def check_different_models(folder: str) -> None:
    ops.random.set_seed(distributed.rank())
    trainer = training.Trainer(perceptron(), "mse", optim.SGD(0.1))
    with pytest.raises(DistributedError, match="must be the same on all ranks at the start, got different values of 0"):
        trainer.fit(POINTS, HEIGHTS)


def check_seeds_of_each_rank(folder: str) -> None:
    """Without a common seed, all ranks use the order of rank 0."""
    trainer = trainer_of("perceptron")
    ops.random.set_seed(distributed.rank())
    trainer.fit(POINTS, HEIGHTS, batch_size=BATCH)
    assert len({json.dumps(losses) for losses in gather(trainer.history.steps)}) == 1


def check_a_stop_on_one_rank(folder: str) -> None:
    def stop(trainer: Any, record: Any) -> None:
        if distributed.rank() == 1:
            trainer.stop()

    trainer = trainer_of("perceptron", training.LambdaCallback(on_epoch_end=stop))
    trainer.fit(POINTS, HEIGHTS, batch_size=BATCH, epochs=5)
    assert trainer.epoch == 1


def check_files_of_rank_0(folder: str) -> None:
    """One rank writes, all know the path, and an error of the writer is an error of all."""
    log = f"{folder}/{distributed.rank()}.csv"
    trainer = trainer_of("perceptron", training.CSVLogger(log))
    trainer.fit(POINTS, HEIGHTS, batch_size=BATCH, verbose=2)
    assert Path(log).exists() == (distributed.rank() == 0)
    assert gather(str(trainer.save(f"{folder}/files"))) == [f"{folder}/files/checkpoint-00000003.safetensors"] * 2
    with pytest.raises(Exception, match=r"Not a directory|File exists|rank 0 must succeed"):
        trainer.save(f"{log.replace('1.csv', '0.csv')}/within")


def check_statistics_of_each_rank(folder: str) -> None:
    """Without synchronisation, running statistics are averaged, so that all ranks have one model."""
    trainer = trainer_of("convolutional", sync_batch_norm=False)
    trainer.fit(IMAGES, LABELS, batch_size=BATCH)
    check_model(trainer.model.tensors())
    assert np.abs(ops.to_numpy(trainer.model.tensors()["1.running_mean"])).max() > 0


def check_metrics_of_all_examples(folder: str) -> None:
    """AUC needs all scores, and the state of metrics in a checkpoint is that of all ranks."""
    trainer = training.Trainer(perceptron(), "mse", optim.SGD(0.0), ["auc", "r2"])
    trainer.model.assign({path: ops.ones_like(x) for path, x in trainer.model.tensors().items()})
    kinds = (HEIGHTS > 0).astype(np.float32)
    found = trainer.evaluate(POINTS, kinds, batch_size=BATCH)
    scores = trainer.predict(POINTS)
    assert found["auc"] == pytest.approx(training.AUC()(kinds, scores), rel=1e-6)
    assert found["r2"] == pytest.approx(training.R2()(kinds, scores), rel=1e-5)


def check_data_of_each_rank(folder: str) -> None:
    trainer = trainer_of("perceptron")
    own = slice(distributed.rank(), None, 2)
    for data in ((POINTS[own], HEIGHTS[own]), ([(POINTS[own][:8], HEIGHTS[own][:8])],)):
        with pytest.raises(DistributedError, match="the data must be the same on all ranks"):
            trainer.fit(*data)


def check_checkpoints_of_each_rank(folder: str) -> None:
    trainer = trainer_of("perceptron")
    place = f"{folder}/seen"
    trainer.fit(POINTS, HEIGHTS)
    trainer.save(place)
    with pytest.raises(DistributedError, match=r"must read the same checkpoint, got \[3, None\]"):
        trainer.restore(place if distributed.rank() == 0 else f"{folder}/elsewhere")


def check_batches_that_cannot_be_divided(folder: str) -> None:
    trainer = trainer_of("perceptron")
    with pytest.raises(ValueError, match="the first axes must have one length, the number of examples"):
        trainer.fit([(POINTS[:4], HEIGHTS[:2])])


class Bytes(training.Callback):
    """Bytes of parameters, gradients and optimizer state that this rank holds after a step."""

    def __init__(self, optimizer: Any) -> None:
        self.held: list[int] = []
        self.update = optimizer.update
        optimizer.update = self.watch

    def watch(self, model: Any, grads: Any) -> None:
        self.grads = _bytes(grads)
        self.update(model, grads)

    def on_step_end(self, trainer: Any, loss: Any) -> None:
        self.held = [_bytes(trainer.model.parameters()), self.grads, _bytes(trainer.optimizer.tensors())]


def _bytes(tensors: dict[str, Any]) -> int:
    return sum(ops.to_numpy(x).nbytes for x in tensors.values())


def sharded(folder: str, steps: int = 6, strategy: str = "sharded") -> dict[str, Any]:
    """Losses and figures of a run that saves in an epoch, and the bytes that each rank held."""
    ops.random.set_seed(3)
    model = nn.Sequential(nn.Linear(6, 40, bias=False), nn.BatchNorm(40), nn.Tanh(), nn.Dropout(0.2), nn.Linear(40, 1))
    # Weight decay for some paths, and clipping by the norm of all parts.
    optimizer = optim.AdamW(0.01, clip_norm=0.5, no_decay="*.bias")
    watch = Bytes(optimizer)
    average = training.ModelAverage(0.5)
    callbacks = [watch, average, training.EarlyStopping(patience=0), training.Checkpoint(folder, every=4)]
    trainer = training.Trainer(model, "mse", optimizer, ["mae"], callbacks, strategy=strategy)
    history = trainer.fit(
        POINTS, HEIGHTS, batch_size=BATCH, max_steps=steps, validation_data=(POINTS[:30], HEIGHTS[:30]), resume=folder
    )
    with average.applied(model):
        averaged = trainer.evaluate(POINTS, HEIGHTS)
    figures = {key: history[key] for key in history.names() if key != "seconds"}
    shapes = [list(x.shape) for x in model.parameters().values()]
    return {"steps": history.steps, **figures, "averaged": averaged, "held": gather(watch.held), "shapes": shapes}


def compiled_statistics() -> None:
    trainer = trainer_of("convolutional", compile=True)
    with pytest.raises(UnsupportedError, match="sync_batch_norm must be False for compile=True on the torch backend"):
        trainer.fit(IMAGES, LABELS)


def trace_only() -> None:
    """Let torch trace what is compiled and run the trace: generating code takes seconds."""
    if "torch" in sys.modules:
        torch = sys.modules["torch"]
        torch.compile = partial(torch.compile, backend="eager")  # type: ignore[attr-defined]


def main(jobs: list[dict[str, Any]]) -> None:
    trace_only()
    results: list[Any] = []
    for job in jobs:
        options = dict(job)
        check = options.pop("check", None)
        results.append(curve(**options) if check is None else globals()[check](**options))
    if distributed.rank() == 0:
        print("RESULT" + json.dumps({"size": distributed.size(), "results": results}))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
