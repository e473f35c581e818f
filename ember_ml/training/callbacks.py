"""Callbacks: what happens beside the training: stopping early, checkpoints, logs."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ember_ml.errors import warn
from ember_ml.training.data import beside
from emberlint import atomic

if TYPE_CHECKING:
    from ember_ml.training.trainer import Trainer


class Callback:
    """The base of callbacks: every method is called at its time, and none need be given.

    What ``state`` answers (a tree of tensors, numbers and strings) is in checkpoints, and ``restore`` is given it.
    """

    def on_fit_begin(self, trainer: Trainer) -> None:
        """Before the first epoch."""

    def on_epoch_begin(self, trainer: Trainer) -> None:
        """Before an epoch; its number, from 0, is ``trainer.epoch``."""

    def on_step_end(self, trainer: Trainer, loss: Any) -> None:
        """After an update. ``loss`` is a tensor; reading its number waits for it."""

    def on_epoch_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        """After an epoch, with what was measured; ``trainer.epoch`` is the number of epochs done."""

    def on_settled(self, trainer: Trainer) -> None:
        """After all callbacks have heard of an update, or of the end of an epoch: the time to save what they know."""

    def on_fit_end(self, trainer: Trainer) -> None:
        """After the last epoch."""

    def state(self) -> Any:
        """What a checkpoint is to keep of this callback."""
        return None

    def restore(self, state: Any) -> None:
        """Go on from where ``state`` says."""


# Words in the names of figures of which less is better.
_ERRORS = frozenset({"loss", "error", "mse", "mae", "rmse", "perplexity", "crossentropy"})


class _Watch:
    """The best value of a figure so far."""

    def __init__(self, owner: Callback, monitor: str | None, mode: str, least: float) -> None:
        self.owner = type(owner).__name__
        if mode not in ("auto", "min", "max"):
            raise ValueError(f"{self.owner}: mode must be 'auto', 'min' or 'max', got {mode!r}")
        if not least >= 0:
            raise ValueError(f"{self.owner}: least must be >= 0, got {least}")
        self.monitor, self.mode, self.least = monitor, mode, least
        self.best = math.nan

    def is_better(self, record: dict[str, float]) -> bool:
        """Whether the figure is better than ever before, by ``least`` or more; it is the best from now on."""
        name = self.monitor or ("val_loss" if "val_loss" in record else "loss")
        if name not in record:
            raise ValueError(f"{self.owner}: monitor must be one of {', '.join(record)}, got {name!r}")
        value = record[name]
        gain = value - self.best if self._grows(name) else self.best - value
        # The first is better than none; an infinity is no better than another.
        if math.isnan(value) or not (math.isnan(self.best) or gain > self.least):
            return False
        self.best = value
        return True

    def _grows(self, name: str) -> bool:
        """Whether more is better: of errors and losses, less is."""
        if self.mode != "auto":
            return self.mode == "max"
        return _ERRORS.isdisjoint(name.split("_"))


class EarlyStopping(Callback):
    """Stops when a figure has not become better for some epochs.

    A run that was stopped is over: resumed, it goes on only with more patience.

    Args:
        monitor: the figure; by default ``val_loss``, or ``loss`` if nothing is validated.
        patience: for how many epochs in a row it may be no better.
        least: by how much it must be better to count.
        mode: ``"min"`` or ``"max"``; by default less is better of what is called a loss, an error, mse, mae, rmse,
            perplexity or crossentropy, more of anything else.
        restore_best: give the model the parameters of its best epoch when training stops early.
    """

    def __init__(
        self,
        monitor: str | None = None,
        patience: int = 5,
        least: float = 0.0,
        mode: str = "auto",
        restore_best: bool = True,
    ) -> None:
        if patience < 0:
            raise ValueError(f"{type(self).__name__}: patience must be >= 0, got {patience}")
        self.watch = _Watch(self, monitor, mode, least)
        self.patience = patience
        self.restore_best = restore_best
        self.waited = 0
        self.tensors: dict[str, Any] = {}

    def on_fit_begin(self, trainer: Trainer) -> None:
        if not trainer.step:
            self.watch.best, self.waited, self.tensors = math.nan, 0, {}
        elif self.waited and self.waited >= self.patience:
            trainer.stop()

    def on_epoch_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        if self.watch.is_better(record):
            self.waited = 0
            # Updates make new tensors, so these stay as they are.
            self.tensors = dict(trainer.model.tensors()) if self.restore_best else {}
            return
        self.waited += 1
        if self.waited >= self.patience:
            trainer.stop()
            if self.tensors:
                # Those of a checkpoint may be in another dtype.
                trainer.model.assign(beside(trainer.model.tensors(), self.tensors))

    def state(self) -> Any:
        return {"best": self.watch.best, "waited": self.waited, "tensors": self.tensors}

    def restore(self, state: Any) -> None:
        self.watch.best, self.waited, self.tensors = state["best"], state["waited"], state["tensors"]


class Checkpoint(Callback):
    """Keeps everything that is needed to go on, in numbered files: ``fit(resume=directory)`` goes on from the last.

    A file holds the tensors of the model and the optimiser, the state of the random stream and of all callbacks, the
    history, and where in the epoch it was. It appears whole or not at all, and any engine reads it. Each run has a
    directory of its own: a warning says so where one has checkpoints of another run with higher numbers.

    Args:
        directory: where the files are; it is made if need be.
        every: after how many updates one is written; by default after every epoch.
        keep: how many files to keep, the latest ones; by default all.
        monitor: write one after an epoch only if this figure is the best so far.
        mode: ``"min"`` or ``"max"`` for the figure, as in ``EarlyStopping``.
    """

    def __init__(
        self,
        directory: Any,
        every: int | None = None,
        keep: int | None = None,
        monitor: str | None = None,
        mode: str = "auto",
    ) -> None:
        if every is not None and every < 1:
            raise ValueError(f"{type(self).__name__}: every must be >= 1, got {every}")
        if keep is not None and keep < 1:
            raise ValueError(f"{type(self).__name__}: keep must be >= 1, got {keep}")
        if every is not None and monitor is not None:
            raise ValueError(
                f"{type(self).__name__}: monitor and every must not both be given, as metrics are known after an "
                "epoch alone"
            )
        self.directory = Path(directory)
        self.every, self.keep = every, keep
        self.watch = _Watch(self, monitor, mode, 0.0) if monitor else None
        self._is_due = self._is_alone = False

    def on_fit_begin(self, trainer: Trainer) -> None:
        self._is_due = self._is_alone = False
        if self.watch is not None and not trainer.step:
            self.watch.best = math.nan

    def on_step_end(self, trainer: Trainer, loss: Any) -> None:
        self._is_due = self.every is not None and trainer.step % self.every == 0

    def on_epoch_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        self._is_due = self.every is None and (self.watch is None or self.watch.is_better(record))

    def on_settled(self, trainer: Trainer) -> None:
        # Not before, since others may come after this one, and a file holds what they know.
        if self._is_due:
            self._is_due = False
            path = trainer.save(self.directory, keep=self.keep)
            if not self._is_alone:
                _warn_of_others(path)
                self._is_alone = True

    def state(self) -> Any:
        return None if self.watch is None else self.watch.best

    def restore(self, state: Any) -> None:
        if self.watch is not None:
            self.watch.best = state


def _warn_of_others(path: Path) -> None:
    """Warn if there are checkpoints with higher numbers than that of the newest."""
    prefix = path.stem.rpartition("-")[0]
    # Numbers have zeros before them, and longer ones are higher.
    last = max(path.parent.glob(f"{prefix}-*{path.suffix}"), key=lambda other: (len(other.name), other.name))
    if last.name != path.name:
        warn(
            f"Checkpoint: {path.parent} has checkpoints of another run, up to {last.name}, which are taken for the "
            f"latest: resume goes on from there, not from {path.name}. Remove them, or give each run its own directory"
        )


class FailOnNaN(Callback):
    """Ends training with a ``FloatingPointError`` when the loss is NaN or infinite.

    Checkpoints from before are what there is to go on from.

    Args:
        every: after how many updates the loss is looked at, which waits for it. That of an epoch is looked at as well.
    """

    def __init__(self, every: int = 1) -> None:
        if every < 1:
            raise ValueError(f"{type(self).__name__}: every must be >= 1, got {every}")
        self.every = every

    def on_step_end(self, trainer: Trainer, loss: Any) -> None:
        if trainer.step % self.every == 0:
            self._check(loss, f"update {trainer.step}")

    def on_epoch_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        self._check(record["loss"], f"epoch {trainer.epoch}")

    def _check(self, loss: Any, where: str) -> None:
        value = float(loss)
        if not math.isfinite(value):
            raise FloatingPointError(f"{type(self).__name__}: the loss of {where} must be finite, got {value}")


class CSVLogger(Callback):
    """Writes a line for every epoch to a file of comma-separated values, and goes on with it after a resume."""

    def __init__(self, path: Any) -> None:
        self.path = Path(path)

    def on_epoch_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        history = trainer.history
        names = ["epoch", *history.names()]
        text = io.StringIO(newline="")
        # All of it every time: a new figure is a new column, and a resumed run leaves no line twice.
        writer = csv.DictWriter(text, names)
        writer.writeheader()
        writer.writerows({"epoch": i, **one} for i, one in enumerate(history.epochs, 1))
        atomic.write(self.path, text.getvalue(), parents=True)


class TensorBoard(Callback):
    """Writes the figures of every epoch, and the loss of some updates, where TensorBoard shows them.

    Args:
        directory: where the event files are.
        every: after how many updates the loss is written.
    """

    def __init__(self, directory: Any, every: int = 10) -> None:
        if every < 1:
            raise ValueError(f"{type(self).__name__}: every must be >= 1, got {every}")
        self.directory, self.every = str(directory), every
        self.writer: Any = None

    def on_fit_begin(self, trainer: Trainer) -> None:
        try:
            from tensorboardX import SummaryWriter  # type: ignore[import-untyped]
        except ImportError as error:
            raise ImportError(
                f"{type(self).__name__} requires tensorboardX: pip install 'ember-ml[tensorboard]'"
            ) from error
        self.writer = SummaryWriter(self.directory, purge_step=trainer.step or None)

    def on_step_end(self, trainer: Trainer, loss: Any) -> None:
        if trainer.step % self.every == 0:
            self.writer.add_scalar("update/loss", float(loss), trainer.step)

    def on_epoch_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        for name, value in record.items():
            part = "validation" if name.startswith("val_") else "training"
            self.writer.add_scalar(f"{part}/{name.removeprefix('val_')}", value, trainer.step)

    def on_fit_end(self, trainer: Trainer) -> None:
        self.writer.close()
