"""Blocks that signals wait for, and what they protect: models and optimisers that are updated as a whole."""

from __future__ import annotations

import doctest
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import numpy as np
import pytest
from interruption import Lines

import ember_ml
import ember_ml.transform
from ember_ml import backend as backends
from ember_ml import interrupts, ops, optim
from ember_ml.backend import Backend
from ember_ml.interrupts import interruptible, uninterrupted
from ember_ml.nn import modules

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGALRM, signal.SIGUSR1]


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
    assert interrupts._current is None


def raising(number: int, frame: FrameType | None) -> None:
    raise TimeoutError(number)


def test_examples_run() -> None:
    assert doctest.testmod(interrupts).failed == 0


def test_a_signal_waits_for_the_end() -> None:
    done = []

    def block() -> None:
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            done.append(1)
            with uninterrupted():
                done.append(2)
            done.append(3)
        done.append(4)

    with pytest.raises(KeyboardInterrupt):
        block()
    assert done == [1, 2, 3]


def test_an_error_is_seen_with_the_signal() -> None:
    def block() -> None:
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
            raise ValueError("wrong")

    with pytest.raises(KeyboardInterrupt) as caught:
        block()
    assert isinstance(caught.value.__context__, ValueError)


@pytest.mark.parametrize("number", SIGNALS)
def test_every_handler_that_may_raise_waits(number: int) -> None:
    signal.signal(number, raising)
    done = []

    def block() -> None:
        with uninterrupted():
            signal.raise_signal(number)
            done.append(1)

    with pytest.raises(TimeoutError):
        block()
    assert done == [1]
    assert signal.getsignal(number) is raising
    signal.signal(number, signal.SIG_IGN)
    with uninterrupted():
        signal.raise_signal(number)
    assert signal.getsignal(number) is signal.SIG_IGN


def test_all_that_have_come_are_handled() -> None:
    heard = []

    def hear(number: int, frame: FrameType | None) -> None:
        heard.append(number)
        raise TimeoutError(number)

    for number in SIGNALS:
        signal.signal(number, hear)

    def block() -> None:
        with uninterrupted():
            for number in SIGNALS:
                signal.raise_signal(number)

    with pytest.raises(TimeoutError):
        block()
    assert heard == SIGNALS
    assert {signal.getsignal(number) for number in SIGNALS} == {hear}


def test_a_part_may_be_interrupted() -> None:
    done = []

    def block(is_early: bool) -> None:
        with uninterrupted():
            if is_early:
                signal.raise_signal(signal.SIGINT)
            try:
                with interruptible():
                    done.append("inside")
                    signal.raise_signal(signal.SIGINT)
                    done.append("never")
            finally:
                # It waits again from here on.
                signal.raise_signal(signal.SIGINT)
                done.append("after")

    with pytest.raises(KeyboardInterrupt):
        block(is_early=False)
    assert done == ["inside", "after"]
    with pytest.raises(KeyboardInterrupt):
        block(is_early=True)
    assert done == ["inside", "after", "after"]
    with pytest.raises(KeyboardInterrupt), interruptible():
        signal.raise_signal(signal.SIGINT)


def test_other_threads_have_no_signals() -> None:
    done = []

    def work() -> None:
        with uninterrupted(), interruptible():
            done.append(1)

    thread = threading.Thread(target=work)
    with uninterrupted():
        thread.start()
        thread.join()
        assert interrupts._current is not None
    assert done == [1]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_at_any_line_of_its_own(number: int) -> None:
    """It raises before the block or after it, and the handlers are as they were."""
    signal.signal(signal.SIGTERM, raising)

    def block() -> str:
        done = "nothing"
        try:
            with uninterrupted():
                done = "half"
                try:
                    with interruptible():
                        pass
                finally:
                    done = "all"
        except (KeyboardInterrupt, TimeoutError):
            return f"{done}, interrupted"
        return done

    with Lines("ember_ml/interrupts.py") as lines:
        assert block() == "all"
    found = set()
    for at, count in lines.seen.items():
        for nth in range(1, count + 1):
            with Lines("ember_ml/interrupts.py", at=at, nth=nth, number=number):
                found.add(block())
            assert signal.getsignal(signal.SIGINT) is signal.default_int_handler, (at, nth)
            assert signal.getsignal(signal.SIGTERM) is raising, (at, nth)
            assert interrupts._current is None, (at, nth)
    assert found == {"nothing, interrupted", "all, interrupted"}


OPTIMIZERS: dict[str, Any] = {
    "SGD": lambda: optim.SGD(0.1, momentum=0.9),
    "Adam": lambda: optim.Adam(0.1, amsgrad=True),
    "RMSprop": lambda: optim.RMSprop(0.1),
    "Grouped": lambda: optim.Grouped(
        [(lambda path, p: p.ndim == 2, optim.AdamW(0.1)), (lambda path, p: True, optim.SGD(0.1, momentum=0.9))]
    ),
}
FILES = ("optim/optimizer.py", "optim/grouped.py", "torch/optim.py", "numpy/optim.py", "modules/module.py")


def state_of(model: Any, optimizer: Any) -> dict[str, Any]:
    tensors = {**model.tensors(), **{f"optimizer {path}": x for path, x in optimizer.tensors().items()}}
    return {path: np.array(ops.to_numpy(x)) for path, x in tensors.items()}


def are_equal(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[path], other[path]) for path in one)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_update_is_whole_whenever_a_signal_comes(backend: Backend, name: str) -> None:
    """The model and the state of the optimiser are both of before it, or both of after it."""

    def run(lines: Lines) -> tuple[Any, Any, bool]:
        ops.random.set_seed(0)
        model = modules.Sequential(modules.Linear(2, 3), modules.Linear(3, 1))
        optimizer = OPTIMIZERS[name]()
        grads = {path: ops.multiply(x, 0.5) for path, x in model.parameters().items()}
        optimizer.update(model, grads)
        # While nobody holds the state, an engine may write into it.
        optimizer.update(model, grads)
        is_interrupted = False
        try:
            with lines:
                optimizer.update(model, grads)
        except KeyboardInterrupt:
            is_interrupted = True
        return model, optimizer, is_interrupted

    before = state_of(*run(_Nowhere())[:2])
    counting = Lines(*FILES)
    after = state_of(*run(counting)[:2])
    assert not are_equal(before, after)
    kinds = set()
    for at, count in counting.seen.items():
        for nth in sorted({1, count}):
            model, optimizer, is_interrupted = run(Lines(*FILES, at=at, nth=nth))
            assert is_interrupted, (at, nth)
            state = state_of(model, optimizer)
            kinds.add("before" if are_equal(state, before) else "after" if are_equal(state, after) else (at, nth))
    assert kinds == {"before", "after"}


class _Nowhere(Lines):
    """Instead of what is to be interrupted, nothing is done."""

    def __enter__(self) -> Lines:
        raise KeyboardInterrupt


@pytest.mark.parametrize("is_first", [True, False], ids=["first", "later"])
@pytest.mark.parametrize("given", ["argument", "closure"])
def test_a_compiled_update_is_whole_whenever_a_signal_comes(
    backend: Backend, is_first: bool, given: str, request: pytest.FixtureRequest, one_in: Callable[[int], int]
) -> None:
    """The first call, which compiles it, and those after it; also of a model that the function finds by its name."""
    if is_first:
        # Each place needs its own program.
        request.getfixturevalue("traced_only")
    assert_whole_update(backend, is_first, given, one_in(3))


@pytest.mark.usefixtures("traced_only")
def test_an_update_in_parts_is_whole_whenever_a_signal_comes(
    monkeypatch: pytest.MonkeyPatch, one_in: Callable[[int], int]
) -> None:
    """On accelerators of torch, the Python between the parts of a compiled function runs as it is."""
    engine = pytest.importorskip("ember_ml.backend.torch.transform", reason="torch is not installed")
    monkeypatch.setattr(engine, "is_better_in_parts", lambda tensors: True)
    with ember_ml.use_backend("torch", device="cpu"):
        assert_whole_update(backends.current(), is_first=False, given="argument", one_in=one_in(3))


def assert_whole_update(backend: Backend, is_first: bool, given: str, one_in: int) -> None:
    """An update of a model and an optimizer that is interrupted at one of ``one_in`` places is whole, or not done."""
    ops.random.set_seed(0)
    # NumPy runs the function itself, and what that assigns before the update is assigned.
    model = modules.Sequential(modules.Linear(2, 3), ops.tanh if backend.name == "numpy" else modules.BatchNorm(3))
    optimizer = optim.Adam(0.1).init(model)
    x = ops.random.normal((4, 2))
    gradient = ember_ml.transform.value_and_grad(lambda model, x: ops.sum(ops.square(model(x))))

    def update(model: Any, optimizer: Any, x: Any) -> Any:
        loss, grads = gradient(model, x)
        optimizer.update(model, grads)
        return loss

    def fresh() -> Any:
        if given == "argument":
            step = ember_ml.transform.compile(update)
            return lambda: step(model, optimizer, x)
        step = ember_ml.transform.compile(lambda x: update(model, optimizer, x))
        return lambda: step(x)

    begin = {path: ops.copy(x) for path, x in model.tensors().items()}
    memory = {path: ops.copy(x) for path, x in optimizer.tensors().items()}

    def reset() -> None:
        model.assign({path: ops.copy(x) for path, x in begin.items()})
        optimizer.assign({path: ops.copy(x) for path, x in memory.items()})

    step = fresh()
    before = state_of(model, optimizer)
    files = ("transform/compilation.py", "transform/call.py", "optim/optimizer.py", "modules/module.py")
    counting = Lines(*files)
    if not is_first:
        step()
        reset()
    with counting:
        step()
    after = state_of(model, optimizer)
    assert not are_equal(before, after)
    places = [(at, nth) for at, count in counting.seen.items() for nth in sorted({1, count})]
    if is_first:
        one_in = max(1, len(places) // (4 if backend.name == "torch" else 20))
    kinds = set()
    for at, nth in places[::one_in]:
        reset()
        if is_first:
            step = fresh()
        lines = Lines(*files, at=at, nth=nth)
        try:
            with lines:
                step()
        except KeyboardInterrupt:
            pass
        else:
            assert lines.seen.get(at, 0) < nth, (at, nth)
            continue
        state = state_of(model, optimizer)
        kinds.add("before" if are_equal(state, before) else "after" if are_equal(state, after) else (at, nth))
    assert kinds <= {"before", "after"}
    assert "before" in kinds
    # What was interrupted can be done.
    reset()
    step()
    assert are_equal(state_of(model, optimizer), after)


def test_a_mistake_in_one_group_leaves_the_others_as_they_were(backend: Backend) -> None:
    model = modules.Sequential(modules.Linear(2, 3), modules.Linear(3, 1))
    optimizer = OPTIMIZERS["Grouped"]()
    grads = {path: ops.ones_like(x) for path, x in model.parameters().items()}
    optimizer.update(model, grads)
    before = state_of(model, optimizer)
    for wrong in ({"1.bias": ops.ones((7,))}, {"2.bias": ops.ones((1,))}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            optimizer.update(model, {**grads, **wrong})
        assert are_equal(state_of(model, optimizer), before)


@pytest.mark.parametrize("name", ["Adam", "SGD"])
def test_overflow_on_numpy_does_not_end_an_update_half_way(name: str) -> None:
    """Nor does it with errors of NumPy raised: the engine writes into the state."""
    with ember_ml.use_backend("numpy"), np.errstate(all="raise"):
        optimizer = OPTIMIZERS[name]()
        values = {"a": ops.ones(2), "b": ops.full((2,), 1e38)}
        new = optimizer.update(values, values)
        new = optimizer.update(new, {"a": ops.ones(2), "b": ops.full((2,), 3e38)})
        assert optimizer.step == 2
        assert {path: int(x) for path, x in optimizer.tensors().items() if path == "step"} == {"step": 2}
        assert np.isfinite(new["a"]).all()
