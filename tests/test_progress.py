"""What the progress bar says besides figures: compilations that take long, and the memory of the device."""

from __future__ import annotations

import io
import re
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

import ember_ml
from ember_ml import nn, optim, training
from ember_ml.training import progress

X, Y = [[0.0], [1.0], [2.0], [3.0]], [[1.0], [3.0], [5.0], [7.0]]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def text(self) -> str:
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.getvalue())


@pytest.fixture(params=[60, 200], ids=["narrow", "wide"])
def terminal(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    shown = Terminal()
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stdout=shown))
    monkeypatch.setattr(progress, "INTERVAL", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(request.param))
    return shown


def trainer(**options: Any) -> Any:
    return training.Trainer(nn.Linear(1, 1), "mse", optim.SGD(0.01), **options)


def slow_first_step(mine: Any, seconds: float) -> None:
    """Make the first compiled step take so long, and compile none."""
    waits = iter([seconds])

    def step(*args: Any) -> Any:
        time.sleep(next(waits, 0.0))
        return mine._train_step(*args)

    mine._compiled_step = step


COMPILED = [name for name in ember_ml.get_available_backends() if name != "numpy"]


@pytest.mark.skipif(not COMPILED, reason="no installed engine compiles")
class TestCompilation:
    def fit(self, seconds: float, **options: Any) -> None:
        with ember_ml.use_backend(COMPILED[-1]):
            mine = trainer(compile=True)
            slow_first_step(mine, seconds)
            mine.fit(X, Y, epochs=2, batch_size=2, **options)

    def test_one_that_takes_long_is_shown(self, terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(progress, "PATIENCE", 0.05)
        self.fit(0.3)
        shown = terminal.text()
        assert "compiling the training step: 0 s" in shown
        # The figures follow.
        assert "loss" in shown[shown.rindex("compiling") :]
        # The step is compiled once, not in every epoch.
        assert "compiling" not in shown[shown.rindex("epoch 2/2") :]

    def test_a_short_one_is_not(self, terminal: Terminal) -> None:
        self.fit(0.0)
        assert "compiling" not in terminal.text()

    def test_no_thread_is_left_by_an_error(self, terminal: Terminal) -> None:
        with ember_ml.use_backend(COMPILED[-1]):
            mine = trainer(compile=True)
            mine._compiled_step = lambda *args: 1 / 0
            before = threading.active_count()
            with pytest.raises(ZeroDivisionError):
                mine.fit(X, Y)
            assert threading.active_count() == before

    def test_nothing_is_shown_without_a_bar(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(progress, "PATIENCE", 0.05)
        self.fit(0.2, verbose=0)
        assert capsys.readouterr().out == ""


def test_the_memory_of_a_device(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = trainer()
    monkeypatch.setattr(mine, "_memory", lambda: 9 * 2**29)
    mine.fit(X, Y)
    assert "4.5 GiB" in terminal.text()


def test_the_memory_of_the_host_is_not_shown(terminal: Terminal) -> None:
    with ember_ml.use_backend("numpy"):
        trainer().fit(X, Y)
    assert "GiB" not in terminal.text()


def test_skipped_steps(terminal: Terminal) -> None:
    with ember_ml.use_backend("numpy"):
        trainer(precision="fp16-mixed").fit([[1e6], [1.0]], [[1.0], [1.0]], batch_size=1, shuffle=False)
    assert "skipped_steps 1" in terminal.text()
