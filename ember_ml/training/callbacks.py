"""Callbacks: early stopping, checkpoints and logs."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ember_ml.errors import warn
from ember_ml.training.data import converted_like
from emberlint import atomic

if TYPE_CHECKING:
    from ember_ml.training.trainer import Trainer


class Callback:
    """Base class of callbacks. Every method is optional.

    Checkpoints hold the value of ``state``, a tree of tensors, numbers and strings, and pass it to ``restore``.
    """

    def on_fit_begin(self, trainer: Trainer) -> None:
        """Called before the first epoch."""

    def on_epoch_begin(self, trainer: Trainer) -> None:
        """Called before every epoch. ``trainer.epoch`` is its number, from 0."""

    def on_step_end(self, trainer: Trainer, loss: Any) -> None:
        """Called after every step. ``loss`` is a tensor; reading its value waits for the computation."""

    def on_epoch_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        """Called after every epoch with its figures. ``trainer.epoch`` is the number of finished epochs."""

    def on_settled(self, trainer: Trainer) -> None:
        """Called when ``on_step_end`` or ``on_epoch_end`` of all callbacks has run; the time to save their state."""

    def on_fit_end(self, trainer: Trainer) -> None:
        """Called after the last epoch, and when training ends with an error."""

    def state(self) -> Any:
        """State of this callback to save in a checkpoint."""
        return None

    def restore(self, state: Any) -> None:
        """Restore the state saved by ``state``."""


# Words in the names of figures that are better when smaller.
_ERRORS = frozenset({"loss", "error", "mse", "mae", "rmse", "perplexity", "crossentropy"})


class _Watch:
    """Best value of a figure so far."""

    def __init__(self, owner: Callback, monitor: str | None, mode: str, least: float) -> None:
        self.owner = type(owner).__name__
        if mode not in ("auto", "min", "max"):
            raise ValueError(f"{self.owner}: mode must be 'auto', 'min' or 'max', got {mode!r}")
        if not least >= 0:
            raise ValueError(f"{self.owner}: least must be >= 0, got {least}")
        self.monitor, self.mode, self.least = monitor, mode, least
        self.best = math.nan

    def is_better(self, record: dict[str, float]) -> bool:
        """Whether the figure is better than the best so far by more than ``least``; if so, it becomes the best."""
        name = self.monitor or ("val_loss" if "val_loss" in record else "loss")
        if name not in record:
            raise ValueError(f"{self.owner}: monitor must be one of {', '.join(record)}, got {name!r}")
        value = record[name]
        gain = value - self.best if self._is_maximized(name) else self.best - value
        # The first value is always the best so far. Two equal infinities differ by NaN, which is not an improvement.
        if math.isnan(value) or not (math.isnan(self.best) or gain > self.least):
            return False
        self.best = value
        return True

    def _is_maximized(self, name: str) -> bool:
        """Whether larger values are better."""
        if self.mode != "auto":
            return self.mode == "max"
        return _ERRORS.isdisjoint(name.split("_"))


class EarlyStopping(Callback):
    """Stop training when a figure has not improved for ``patience`` epochs.

    A run that was stopped early continues from its checkpoint only if ``patience`` is raised.

    Args:
        monitor: name of the figure; by default ``val_loss``, or ``loss`` without validation data.
        patience: number of consecutive epochs without improvement after which training stops.
        least: smallest change that counts as an improvement.
        mode: ``"min"``, ``"max"`` or ``"auto"``. With ``"auto"``, smaller is better for names that contain loss,
            error, mse, mae, rmse, perplexity or crossentropy, and larger is better for all others.
        restore_best: restore the parameters of the best epoch when training stops early.
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
            # Steps replace the tensors and never write into them, so no copy is needed.
            self.tensors = dict(trainer.model.tensors()) if self.restore_best else {}
            return
        self.waited += 1
        if self.waited >= self.patience:
            trainer.stop()
            if self.tensors:
                # Tensors restored from a checkpoint may have another dtype.
                trainer.model.assign(converted_like(trainer.model.tensors(), self.tensors))

    def state(self) -> Any:
        return {"best": self.watch.best, "waited": self.waited, "tensors": self.tensors}

    def restore(self, state: Any) -> None:
        self.watch.best, self.waited, self.tensors = state["best"], state["waited"], state["tensors"]


class Checkpoint(Callback):
    """Write numbered checkpoint files; ``fit(resume=directory)`` continues from the last one.

    A file holds the tensors of the model and the optimizer, the state of the random stream, the metrics and all
    callbacks, the history, and the position in the epoch. Files are written atomically, and every engine can read
    them. Use one directory per run: a warning is issued if the directory has checkpoints of another run with higher
    numbers.

    Args:
        directory: directory of the files; created if missing.
        every: number of steps between two checkpoints; by default one is written after every epoch.
        keep: number of latest files to keep; by default all.
        monitor: name of a figure; write a checkpoint only after epochs where it is the best so far.
        mode: ``"min"``, ``"max"`` or ``"auto"`` for ``monitor``, as in ``EarlyStopping``.
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
        self._is_due = self._is_checked = False

    def on_fit_begin(self, trainer: Trainer) -> None:
        self._is_due = self._is_checked = False
        if self.watch is not None and not trainer.step:
            self.watch.best = math.nan

    def on_step_end(self, trainer: Trainer, loss: Any) -> None:
        self._is_due = self.every is not None and trainer.step % self.every == 0

    def on_epoch_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        self._is_due = self.every is None and (self.watch is None or self.watch.is_better(record))

    def on_settled(self, trainer: Trainer) -> None:
        # A file holds the state of all callbacks, including those that run after this one.
        if self._is_due:
            self._is_due = False
            path = trainer.save(self.directory, keep=self.keep)
            if not self._is_checked:
                _warn_if_not_latest(path)
                self._is_checked = True

    def state(self) -> Any:
        return None if self.watch is None else self.watch.best

    def restore(self, state: Any) -> None:
        if self.watch is not None:
            self.watch.best = state


def _warn_if_not_latest(path: Path) -> None:
    """Warn if the directory has checkpoints with higher numbers than ``path``, which was just written."""
    prefix = path.stem.rpartition("-")[0]
    # Numbers are zero-padded, so longer names have higher numbers.
    last = max(path.parent.glob(f"{prefix}-*{path.suffix}"), key=lambda other: (len(other.name), other.name))
    if last.name != path.name:
        warn(
            f"Checkpoint: {path.parent} has checkpoints of another run, up to {last.name}, which are taken for the "
            f"latest: resume goes on from there, not from {path.name}. Remove them, or give each run its own directory"
        )


class FailOnNaN(Callback):
    """Raise ``FloatingPointError`` when the loss is NaN or infinite.

    Training can be resumed from an earlier checkpoint.

    Args:
        every: number of steps between two checks. A check waits for the loss. The loss of an epoch is always checked.
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
    """Write the figures of every epoch to a CSV file. A resumed run continues the file.

    Args:
        path: the CSV file.
    """

    def __init__(self, path: Any) -> None:
        self.path = Path(path)

    def on_epoch_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        history = trainer.history
        names = ["epoch", *history.names()]
        text = io.StringIO(newline="")
        # Rewriting the whole file handles new columns, and rows that a resumed run would write twice.
        writer = csv.DictWriter(text, names)
        writer.writeheader()
        writer.writerows({"epoch": i, **one} for i, one in enumerate(history.epochs, 1))
        atomic.write(self.path, text.getvalue(), parents=True)


class TensorBoard(Callback):
    """Write the figures of every epoch and the loss of every ``every``-th step as TensorBoard event files.

    Args:
        directory: directory of the event files.
        every: number of steps between two writes of the loss.
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
