"""What all tests share. ``ember_ml.testing.plugin`` has the fixture ``backend``: each installed engine, active."""

from __future__ import annotations

import gc
import os
import signal
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

import environment  # noqa: F401 - sets what engines read when they are imported
import pytest
from exceptions import EXCEPTIONS

import ember_ml
from ember_ml import backend as backends
from ember_ml.dispatch import REGISTRY
from ember_ml.random import threefry

pytest_plugins = ["ember_ml.testing.plugin", "pytester", "triples"]

# What --quick keeps: these engines, and one of so many cases of the contract.
QUICK_ENGINES = ("numpy", "torch")
QUICK_STEP = 21  # odd, as the engines of an operation follow each other

# Without --whole, one of so many tests of JAX runs: it compiles what it computes, which takes half an hour for all of
# them. Of these files, all tests run.
SAMPLE = 48
WHOLE_FILES = (
    "test_data_parallel.py",
    "test_distributed.py",
    "test_jax.py",
    "test_learning.py",
    "test_same_signatures.py",
    "test_sharded.py",
    "test_threefry.py",
)
# Checks that judge every operation on JAX, or one of a few.
CHECK_SAMPLES = {
    "test_a_tensor_without_axes_along_one": 1,
    "test_an_axis_out_of_range_is_an_axis_error": 1,
    "test_dtype_rule_holds": 1,
    "test_every_kind_of_input_is_accepted": 1,
    "test_example_runs": 1,
    "test_gradients_are_the_differences": 8,
    "test_is_provided": 1,
    "test_results_are_those_of_the_reference": 1,
    "test_signature_is_the_same_on_the_engine": 1,
    "test_something_that_is_no_tensor_is_a_type_error": 1,
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="NumPy and torch alone, and a sample of the contract")
    parser.addoption("--whole", action="store_true", help="all tests of JAX and cases of slow tests, not a sample")
    parser.addoption("--site", metavar="FOLDER", help="test the documentation site in this folder, not a part of it")


def pytest_configure(config: pytest.Config) -> None:
    """Let Ctrl-C interrupt, which the shell disables for a suite that it runs in the background."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With ``--quick``, leave out other engines and most cases of the contract; without ``--whole``, most of JAX."""
    from ember_ml.testing.plugin import engine_of  # a plugin, which pytest imports after this file

    if not config.getoption("--whole"):
        left_out = {item for item in items if _is_left_out(item)}
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]
    if config.getoption("--quick"):
        kept = [item for item in items if engine_of(item) in (None, *QUICK_ENGINES)]
        contract = [item for item in kept if item.get_closest_marker("contract")]
        left_out = set(items) - set(kept) | set(contract) - set(contract[::QUICK_STEP])
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]


def pytest_collection_finish() -> None:
    """Keep garbage collections, of which tests and torch's compiler make many, from searching all collected tests."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Let plugins that are imported at the end see all objects."""
    gc.unfreeze()


def _is_left_out(item: pytest.Item) -> bool:
    """Whether a test of JAX is not in the sample, which is the same in each run."""
    callspec = getattr(item, "callspec", None)
    given = [] if callspec is None else [value for value in callspec.params.values() if isinstance(value, str)]
    if "jax" not in given or item.path.name in WHOLE_FILES:
        return False
    # Without its extension, dispatch is the same program for all engines.
    is_usual = "EMBER_ML_PURE_PYTHON" not in os.environ
    sample = CHECK_SAMPLES.get(getattr(item, "originalname", ""), SAMPLE) if is_usual else SAMPLE
    return zlib.crc32(item.name.encode()) % sample > 0


@pytest.fixture
def one_in(request: pytest.FixtureRequest) -> Callable[[int], int]:
    """The step through the cases of a slow test: the given one, or 1 with ``--whole``."""
    return lambda step: 1 if request.config.getoption("--whole") else step


@pytest.fixture(scope="session", autouse=True)
def _settled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Compute on the CPU wherever a test does not have an engine from the fixture, and in the processes of tests.

    Such a test names its engine, and compares it with tensors that the engine creates on the CPU by itself.
    """
    os.environ[backends.DEVICE_VARIABLE] = "cpu"
    if "torch" in ember_ml.get_available_backends():
        from ember_ml.backend.torch.compiler import when_imported

        when_imported(_skip_timing_of_guards)
    if request.config.getoption("--device") != "cpu":
        _keep_full_precision()
        # torch warns if it cannot keep the kernels that it compiles, which it does in the home folder otherwise.
        os.environ["PYTORCH_KERNEL_CACHE_PATH"] = str(tmp_path_factory.mktemp("kernels"))


def _skip_timing_of_guards() -> None:
    """Keep torch from measuring, for its log, how long the guards of each compiled function take.

    torch 2.13 flushes the caches of the processor for that, which takes as long as tracing a small function.
    """
    import torch._dynamo.guards

    if hasattr(torch._dynamo.guards, "profile_guard_manager"):
        torch._dynamo.guards.profile_guard_manager = lambda *_: 0.0


def _keep_full_precision() -> None:
    """Keep CUDA from rounding float32 to TensorFloat32, which no tolerance for float32 allows for."""
    os.environ["MLX_ENABLE_TF32"] = "0"
    if "torch" in ember_ml.get_available_backends():
        import torch

        torch.backends.cudnn.allow_tf32 = False


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say how much the contract test covers."""
    engines = ember_ml.get_available_backends()
    terminalreporter.write_line(
        f"contract: {len(REGISTRY)} operations on {', '.join(engines)} ({config.getoption('--device')}) are "
        f"{len(REGISTRY) * len(engines)} pairs; {len(EXCEPTIONS)} known exceptions"
    )
    for name in engines:
        found = Counter(backends.load(name).provider(operation) for operation in REGISTRY.values())
        counts = ", ".join(f"{found[kind]} {kind}" for kind in ("own", "defined", "missing"))
        terminalreporter.write_line(f"matrix: {name}: {counts}")


@pytest.fixture(autouse=True)
def _home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees, or writes, the choice of the person who runs it."""
    monkeypatch.setenv("HOME", str(tmp_path_factory.getbasetemp() / "home"))
    monkeypatch.delenv("EMBER_ML_BACKEND", raising=False)


@pytest.fixture
def traced_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let torch trace what is compiled and run the trace, for tests of many programs: generating code takes seconds."""
    if "torch" in ember_ml.get_available_backends():
        import torch

        monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))


@pytest.fixture(autouse=True)
def _no_open_block() -> Iterator[None]:
    """A signal that a test sends may come between the opening of a block of random numbers and its end."""
    yield
    threefry.here.block = threefry.here.rows = None
