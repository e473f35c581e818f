"""Every test that takes ``backend`` runs on each installed engine, with that engine active."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator

import pytest
from exceptions import EXCEPTIONS

import ember_ml
from ember_ml import backend as backends
from ember_ml import ops
from ember_ml.dispatch import REGISTRY
from ember_ml.random import threefry

pytest_plugins = ["judging", "pytester", "triples"]

DEVICE = "cpu"

# What --quick keeps: these engines, and one of so many cases of the contract.
QUICK_ENGINES = ("numpy", "torch")
QUICK_STEP = 20


def pytest_addoption(parser: pytest.Parser) -> None:
    default = os.environ.get("EMBER_ML_TEST_DEVICE", DEVICE)
    parser.addoption("--device", default=default, help=f"where engines that have it compute (default: {default})")
    parser.addoption("--quick", action="store_true", help="NumPy and torch alone, and a sample of the contract")


def pytest_configure(config: pytest.Config) -> None:
    """Take the device that is asked for, which some engine must have."""
    global DEVICE
    DEVICE = config.getoption("--device")
    engines = ember_ml.get_available_backends() if DEVICE != "cpu" else []
    found = {name: backends.load(name).devices() for name in engines}
    if found and not any(DEVICE in devices for devices in found.values()):
        raise pytest.UsageError(f"--device: no engine has {DEVICE!r}; available: {found}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With ``--quick``, leave out other engines and most cases of the contract."""
    if config.getoption("--quick"):
        kept = [item for item in items if _engine_of(item) in (None, *QUICK_ENGINES)]
        contract = [item for item in kept if item.get_closest_marker("contract")]
        left_out = set(items) - set(kept) | set(contract) - set(contract[::QUICK_STEP])
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]


def _engine_of(item: pytest.Item) -> str | None:
    """The name of the engine that a test runs on, if it is of one engine."""
    callspec = getattr(item, "callspec", None)
    return None if callspec is None else callspec.params.get("backend")


def pytest_runtest_setup(item: pytest.Item) -> None:
    if DEVICE == "cpu" and item.get_closest_marker("device"):
        pytest.skip("needs an accelerator: run with --device, such as --device cuda")


@pytest.fixture
def device() -> str:
    """The device that is tested."""
    return DEVICE


@pytest.fixture(params=ember_ml.get_available_backends())
def backend(request: pytest.FixtureRequest) -> Iterator[backends.Backend]:
    """A loaded engine, active for the test; on the device that ``--device`` names, if the engine has it."""
    loaded = backends.load(request.param)
    if request.node.get_closest_marker("device") and DEVICE not in loaded.devices():
        pytest.skip(f"{loaded.name} has no device {DEVICE!r}")
    before = loaded.device
    ember_ml.set_backend(request.param)
    _settle(loaded)
    yield loaded
    loaded.device = before
    ember_ml.set_backend("numpy")


def _settle(loaded: backends.Backend) -> None:
    """Let an engine make tensors on the device that is tested."""
    with ember_ml.use_backend(loaded.name):
        if DEVICE in loaded.devices() and ops.get_default_device() != DEVICE:
            ops.set_default_device(DEVICE)
    if DEVICE != "cpu":
        _in_full_precision(loaded.name)


@pytest.fixture(scope="session", autouse=True)
def _settled() -> None:
    """MLX would take the GPU of a Mac, which has no float64, also where a test asks for no engine."""
    if DEVICE == "cpu" and "mlx" in ember_ml.get_available_backends():
        _settle(backends.load("mlx"))


def _in_full_precision(name: str) -> None:
    """Keep CUDA from rounding float32 to TensorFloat32, which no tolerance for float32 allows for."""
    os.environ["MLX_ENABLE_TF32"] = "0"
    if name == "torch":
        import torch

        torch.backends.cudnn.allow_tf32 = False


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how much the contract test covers."""
    engines = ember_ml.get_available_backends()
    terminalreporter.write_line(
        f"contract: {len(REGISTRY)} operations on {', '.join(engines)} ({DEVICE}) are "
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


@pytest.fixture(autouse=True)
def _no_open_block() -> Iterator[None]:
    """A signal that a test sends may come between the opening of a block of random numbers and its end."""
    yield
    threefry.here.block = None
