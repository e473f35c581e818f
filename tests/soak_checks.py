"""The checks of ``soak.py``: each runs one case, drawn from a random generator, and fails if it finds something."""

from __future__ import annotations

import asyncio
import faulthandler
import functools
import itertools
import multiprocessing
import os
import random
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

import ember_ml
from ember_ml import backend as backends
from ember_ml import nn, ops, optim, training
from ember_ml.dispatch import REGISTRY, TENSOR, Operation
from ember_ml.errors import UnsupportedError
from ember_ml.ops import random as draws
from ember_ml.testing.comparison import assert_same, dtype_name, dtypes_of_device, host, leaves
from ember_ml.testing.samples import Call, calls, given, made

ENGINES = ember_ml.get_available_backends()

# A child process that does not reply in so many seconds hangs.
PATIENCE = 60


@contextmanager
def described(what: str) -> Iterator[None]:
    """A failure in the block says what it was about."""
    try:
        yield
    except Exception as error:
        error.add_note(what)
        raise


# In many threads at once: operations, blocks, compiled functions, generators.


def operations(rng: random.Random) -> None:
    """An operation on an engine returns what NumPy returns, or raises an error of the same class."""
    operation, engine = rng.choice(with_tensors()), rng.choice(ENGINES)
    available = dtypes_of_device(backends.load(engine))
    call = drawn(rng, operation, sorted(available.intersection(operation.dtypes)))
    if not available.issuperset(dtypes_in([call.args, call.kwargs])):
        return
    wanted, found = outcome(operation, "numpy", call), outcome(operation, engine, call)
    with described(f"{operation.name} on {engine} with {call}"):
        if not isinstance(wanted, Exception) and not available.issuperset(dtypes_in(wanted)):
            assert type(found) is UnsupportedError, f"{found!r} is not an UnsupportedError"
        elif isinstance(wanted, Exception) or isinstance(found, Exception):
            assert type(found) is type(wanted), f"{found!r}, not {wanted!r}"
        else:
            assert_same(found, wanted, given(operation, "TOLERANCE"))


@functools.cache
def with_tensors() -> list[Operation]:
    """The operations that take tensors: the others set defaults of the process, or depend on where they run."""
    return [operation for operation in REGISTRY.values() if operation.tensors and not given(operation, "VARIES")]


def drawn(rng: random.Random, operation: Operation, dtypes: list[str]) -> Call:
    """A call in drawn shapes and dtypes where the signature makes the samples, else one of those given by hand."""
    parameters = [p for p in operation.tensors if not p.keyword]
    if given(operation, "CALLS") or given(operation, "SHAPES") or any(p.role != TENSOR for p in parameters):
        return rng.choice(calls(operation))
    whole = [rng.randint(0, 4) for _ in range(rng.randint(0, 3))]
    shapes = [tuple(1 if rng.random() < 0.3 else n for n in whole[rng.randint(0, len(whole)) :]) for _ in parameters]
    return made(operation, shapes, [rng.choice(dtypes) for _ in parameters])


def dtypes_in(values: Any) -> set[str]:
    """The dtypes of the arrays in a structure."""
    return {dtype_name(leaf) for _, leaf in leaves(values) if isinstance(leaf, (np.ndarray, np.generic))}


def outcome(operation: Operation, engine: str, call: Call) -> Any:
    """The result on an engine, or the error."""
    with ember_ml.use_backend(engine):
        native = call.map(ops.asarray)
        try:
            return operation.call(*native.args, **native.kwargs)
        except Exception as error:
            return error


def switching(rng: random.Random) -> None:
    """Nested blocks of threads and tasks see neither each other nor what ``set_backend`` does meanwhile."""
    ember_ml.set_backend(rng.choice(ENGINES))

    async def nested(names: list[str]) -> None:
        for name in names[:1]:
            with ember_ml.use_backend(name):
                await asyncio.sleep(rng.random() * 1e-3)
                check_active(name)
                await nested(names[1:])
                check_active(name)

    async def tasks() -> None:
        await asyncio.gather(*(nested(rng.choices(ENGINES, k=3)) for _ in range(4)))

    asyncio.run(tasks())


def check_active(name: str) -> None:
    assert ember_ml.get_backend() == name, f"{ember_ml.get_backend()} is active in a block of {name}"
    assert isinstance(ops.zeros(2), backends.load(name).tensors), f"a new tensor in a block of {name} is not its own"


FUNCTIONS: list[Callable[..., Any]] = [
    lambda x: ops.tanh(ops.multiply(x, 2.0)),
    lambda x: ops.softmax(ops.matmul(x, ops.matrix_transpose(x))),
]
COMPILED = [ember_ml.compile(f) for f in FUNCTIONS]


def compiled(rng: random.Random) -> None:
    """A compiled function returns what the function itself returns, in whichever thread it was compiled."""
    which, engine = rng.randrange(len(FUNCTIONS)), rng.choice(ENGINES)
    data = np.random.default_rng(rng.getrandbits(32)).normal(size=rng.choice([(2, 3), (4, 4)]))
    with ember_ml.use_backend(engine), described(f"function {which} of {data.shape} on {engine}"):
        x = ops.asarray(data, dtype="float32")
        assert_same(COMPILED[which](x), FUNCTIONS[which](x), 1e-5)


def generators(rng: random.Random) -> None:
    """A seed gives the same numbers on every engine, from a generator and in a stream."""
    seed, engine, shape = rng.getrandbits(40), rng.choice(ENGINES), (rng.randint(0, 9), 3)

    def draw(engine: str) -> list[Any]:
        with ember_ml.use_backend(engine), draws.stream(draws.key(seed)):
            generator = draws.Generator(seed)
            found = [generator.uniform(shape), generator.randint(shape, 0, 9), generator.bernoulli(shape, 0.3)]
            return [*found, draws.random_uniform(shape), draws.random_permutation(7)]

    with described(f"seed {seed} on {engine}"):
        assert_same(draw(engine), draw("numpy"), 0.0)


# Training that Ctrl-C interrupts.


def interrupts(rng: random.Random) -> None:
    """After Ctrl-C the model is that of a whole number of steps; saved, it goes on as if nothing had happened."""
    engine, seed, compile = rng.choice(ENGINES), rng.getrandbits(32), rng.random() < 0.05
    with ember_ml.use_backend(engine), tempfile.TemporaryDirectory() as folder, described(f"fit on {engine}"):
        recorder, begin = Recorder(), time.monotonic()
        fit(trainer(seed, compile, recorder))
        one = trainer(seed, compile, training.Checkpoint(folder, every=2, keep=3))
        interrupted(functools.partial(fit, one), rng.uniform(0, time.monotonic() - begin))
        with described(f"after {one.step} steps of {len(recorder.states) - 1}"):
            # Before the first step, the optimizer may not have looked at the model yet.
            parts = 2 if one.step else 1
            assert_same(snapshot(one)[:parts], recorder.states[one.step][:parts], 0.0)
            check_files(Path(folder))
            # A checkpoint holds where the random stream is, so it comes before a new seed.
            path = one.save(Path(folder, "last"))
            other = trainer(seed + 1, compile, training.Callback())
            fit(other, resume=path)
            assert_same(snapshot(other), recorder.states[-1], 0.0)


class Recorder(training.Callback):
    """The tensors of a run, before its first step and after every one."""

    def __init__(self) -> None:
        self.states: list[Any] = []

    def on_fit_begin(self, trainer: training.Trainer, *_: Any) -> None:
        self.states.append(snapshot(trainer))

    on_step_end = on_fit_begin


def snapshot(trainer: training.Trainer) -> list[Any]:
    """Copies of the tensors of the model and of the optimizer."""
    return [{k: np.array(host(x)) for k, x in o.tensors().items()} for o in (trainer.model, trainer.optimizer)]


def trainer(seed: int, compile: bool, callback: training.Callback) -> training.Trainer:
    """A new model with its optimizer; the seed decides its first parameters, and the numbers that ``fit`` draws."""
    ops.set_seed(seed)
    model = nn.modules.Sequential(nn.modules.Linear(3, 8), nn.modules.Dropout(0.2), nn.modules.Linear(8, 1))
    # Here and not in fit, which may be interrupted before it.
    ops.set_seed(seed)
    return training.Trainer(model, "mse", optim.Adam(0.01), ["mae"], [callback], compile=compile)


def fit(trainer: training.Trainer, **options: Any) -> None:
    data = np.random.default_rng(0).normal(size=(40, 3)).astype("float32")
    trainer.fit(data, data[:, :1], epochs=4, batch_size=8, verbose=0, **options)


def interrupted(run: Callable[[], Any], seconds: float) -> None:
    """``run``, with SIGINT after some seconds unless it has ended."""
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        run()
        timer.cancel()
        timer.join()
        time.sleep(0.01)  # a signal that was just sent arrives here
    except KeyboardInterrupt:
        timer.join()


def check_files(folder: Path) -> None:
    """Every file that has its name is whole."""
    for path in folder.rglob("[!.]*.*"):
        ops.load(path)


# Processes that are killed while they write, and processes that are forked and spawned.


def kills(rng: random.Random) -> None:
    """A file whose writer was killed is whole, old or new; the next writer leaves no other file there."""
    suffix = rng.choice([".safetensors", ".npz", ".npy"])
    with tempfile.TemporaryDirectory() as folder, described(f"a writer of {suffix} that was killed"):
        path = Path(folder, f"tensors{suffix}")
        with child("spawn", write_forever, path) as (process, connection):
            received(process, connection)
            time.sleep(rng.uniform(0, 0.3))
        check_files(Path(folder))
        version = whole_version(path)
        ops.save(path, versioned(path, version + 1))
        assert whole_version(path) == version + 1
        assert os.listdir(folder) == [path.name], f"left in the folder: {os.listdir(folder)}"


def write_forever(connection: Connection, path: Path) -> None:
    for version in itertools.count(1):
        ops.save(path, versioned(path, version))
        if version == 1:
            connection.send(None)


def versioned(path: Path, version: int) -> Any:
    """Tensors in which every element is the version."""
    tensor = np.full((300, 1000), version, np.float32)
    return tensor if path.suffix == ".npy" else {"a": tensor, "b": [tensor[0], tensor]}


def whole_version(path: Path) -> int:
    """The version that a file holds; fails unless it is the same in every part."""
    tensors = [host(leaf) for place, leaf in leaves(ops.load(path)) if not place.endswith("length")]
    found = set(np.concatenate([tensor.ravel() for tensor in tensors]).tolist())
    assert len(found) == 1, f"versions {sorted(found)} in one file"
    return int(found.pop())


def children(rng: random.Random) -> None:
    """A child computes what its parent does; after a fork, MLX says that it cannot, and does not hang."""
    methods = [m for m in ("fork", "spawn") if m in multiprocessing.get_all_start_methods()]
    method, engine = rng.choice(methods), rng.choice(ENGINES)
    with described(f"a child by {method} on {engine}"):
        wanted = computed(engine)
        with child(method, compute, engine) as (process, connection):
            found = received(process, connection)
            process.join(PATIENCE)
            assert process.exitcode == 0, f"it ended with {process.exitcode}"
        if (method, engine) == ("fork", "mlx"):
            assert "fork" in str(found), f"after a fork, it returned {found}"
        else:
            assert found == wanted, f"it returned {found}, not {wanted}"


def computed(engine: str) -> Any:
    with ember_ml.use_backend(engine):
        x = draws.Generator(3).uniform((5, 5))
        return ops.matmul(x, x).tolist()


def compute(connection: Connection, engine: str) -> None:
    try:
        connection.send(computed(engine))
    except Exception as error:
        connection.send(repr(error))


@contextmanager
def child(method: Any, run: Callable[..., None], *args: Any) -> Iterator[tuple[Any, Connection]]:
    """A process that runs ``run`` with a connection; it is killed at the end of the block."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context(method).Process(target=guarded, args=(run, there, *args), daemon=True)
    process.start()
    there.close()
    try:
        yield process, here
    finally:
        process.kill()
        process.join()
        here.close()


def guarded(run: Callable[..., None], connection: Connection, *args: Any) -> None:
    """``run`` in a child, which writes its stack when its parent loses patience."""
    faulthandler.register(signal.SIGUSR1)
    run(connection, *args)


def received(process: Any, connection: Connection) -> Any:
    """What a child has sent."""
    if not connection.poll(PATIENCE):
        os.kill(process.pid, signal.SIGUSR1)
        time.sleep(1)
        raise AssertionError("no reply: it hangs; its stack is above")
    try:
        return connection.recv()
    except EOFError:
        process.join()
        raise AssertionError(f"no reply: it ended with {process.exitcode}") from None
