"""Devices: the ones there are, the default one, and what is said of those that are absent."""

from __future__ import annotations

import inspect
import pickle
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from layers import CASES

import ember_ml
from ember_ml import backend as backends
from ember_ml import nn, ops, optim, transform
from ember_ml.backend import Backend
from ember_ml.dispatch import DEVICE, REGISTRY, Operation
from ember_ml.nn import features, tensor
from ember_ml.testing.comparison import assert_same, leaves
from ember_ml.testing.samples import Call, calls, given
from ember_ml.training import metrics
from ember_ml.training.data import as_data


@pytest.fixture(autouse=True)
def _as_before(request: pytest.FixtureRequest) -> Iterator[None]:
    """Whatever a test makes the default device, it is none afterwards."""
    from ember_ml.ops import device

    device._missed.clear()
    yield
    for name in ember_ml.get_available_backends():
        with ember_ml.use_backend(name):
            ops.set_default_device(None)


def test_the_cpu_is_always_there(backend: Backend) -> None:
    found = ops.get_available_devices()
    assert found[0] == "cpu"
    assert all(isinstance(name, str) and ops.is_available(name) for name in found)
    assert ops.get_available_devices(backend.name) == found
    assert ops.get_available_devices("numpy") == ["cpu"]


def test_devices_of_an_unknown_backend() -> None:
    with pytest.raises(ember_ml.errors.BackendNotFoundError, match="abacus"):
        ops.get_available_devices("abacus")


def test_every_device_holds_tensors(backend: Backend) -> None:
    for name in ops.get_available_devices():
        x = ops.to_device([1.0, 2.0], name)
        assert ops.get_device(x).startswith(name) or backend.name == "mlx"
        assert ops.to_numpy(ops.add(x, 1.0)).tolist() == [2.0, 3.0]
        assert ops.get_device(ops.to_device(x, "cpu")) == "cpu" or backend.name == "mlx"


def test_moving_to_where_it_is_changes_nothing(backend: Backend) -> None:
    x = ops.to_device(ops.asarray([1.0]), "cpu")
    assert ops.to_device(x, "cpu") is x


@pytest.mark.parametrize("wrong", ["abacus", "cuda:99", "", 3, "CPU "])
def test_an_absent_device_raises_and_says_which_there_are(backend: Backend, wrong: object) -> None:
    before = backend.chosen_device
    assert not ops.is_available(wrong)
    for use in (ops.set_default_device, lambda name: ops.to_device([1.0], name), ops.synchronize, ops.memory_info):
        with pytest.raises(ValueError, match="device must be one of cpu"):
            use(wrong)
    assert backend.chosen_device is before


def test_the_default_device_is_where_tensors_are_made(backend: Backend) -> None:
    for name in ops.get_available_devices():
        ops.set_default_device(name)
        assert ops.get_default_device().startswith(name)
        assert ops.get_device(ops.asarray([1.0])) == ops.get_default_device()
        assert ops.get_device(ops.zeros((2,))) == ops.get_default_device()
    ops.set_default_device(None)
    assert backend.chosen_device is None


def test_each_backend_has_a_default_of_its_own(backend: Backend) -> None:
    ops.set_default_device("cpu")
    assert backend.chosen_device is not None
    for name in ember_ml.get_available_backends():
        if name != backend.name:
            assert backends.load(name).chosen_device is None


def test_falling_back_is_asked_for_and_warned_about_once(backend: Backend) -> None:
    with pytest.warns(UserWarning, match="no device 'abacus'.*CPU"):
        ops.set_default_device("abacus", fallback=True)
    assert ops.get_default_device() == "cpu"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ops.set_default_device("abacus", fallback=True)
        ops.set_default_device("cpu", fallback=True)
    assert ops.get_default_device() == "cpu"


def test_the_preferred_device_is_the_first_that_exists(backend: Backend) -> None:
    assert ops.prefer_device("abacus", "cpu", "cuda") == "cpu"
    assert ops.prefer_device("cuda", "mps", "cpu") in ops.get_available_devices()
    with pytest.raises(ValueError, match=r"prefer_device: one of the names must be a device that is here \(cpu.*\),"):
        ops.prefer_device("abacus", "slate")
    with pytest.raises(ValueError, match=r"prefer_device: one of the names must be a device that is here \(cpu.*\),"):
        ops.prefer_device()


def test_gpu_is_the_best_accelerator_or_absent(backend: Backend) -> None:
    assert ops.is_available("gpu") is (len(ops.get_available_devices()) > 1)


@pytest.mark.device
def test_gpu_is_a_name_of_the_accelerator(backend: Backend) -> None:
    assert ops.prefer_device("gpu", "cpu") == "gpu"
    ops.set_default_device("gpu")
    assert ops.get_default_device() != "cpu"
    assert ops.get_device(ops.zeros(2)) == ops.get_default_device()


@pytest.mark.device
def test_the_memory_of_an_accelerator_is_that_of_its_tensors(backend: Backend, device: str) -> None:
    before = ops.memory_usage(device)
    big = ops.add(ops.zeros((1000, 1000), device=device), 1.0)
    assert float(ops.to_numpy(big)[0, 0]) == 1.0
    assert ops.memory_usage(device) >= before + 4_000_000


def test_synchronize_returns_none(backend: Backend) -> None:
    for name in (None, *ops.get_available_devices()):
        assert ops.synchronize(name) is None


def test_memory_is_counted_in_bytes(backend: Backend) -> None:
    big = ops.add(ops.zeros((1000, 1000)), 1.0)
    assert float(ops.to_numpy(big)[0, 0]) == 1.0
    for name in (None, *ops.get_available_devices()):
        info = ops.memory_info(name)
        assert list(info) == ["allocated", "peak", "total", "free"]
        assert all(value is None or type(value) is int for value in info.values())
        assert type(ops.memory_usage(name)) is int
    here = ops.memory_info(ops.get_default_device())
    assert here["allocated"] is None or here["allocated"] >= 4_000_000
    assert here["peak"] is None or here["peak"] >= 4_000_000
    assert here["total"] is None or here["free"] is None or 0 < here["free"] <= here["total"]


def test_memory_without_the_files_of_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("resource", reason="Windows has neither")

    def absent(path: Path, *args: Any, **kwargs: Any) -> str:
        raise FileNotFoundError(path)

    monkeypatch.setattr(Path, "read_text", absent)
    with ember_ml.use_backend("numpy"):
        found = ops.memory_info()
    assert found["allocated"] == found["peak"] is not None
    assert found["peak"] > 1_000_000, "bytes"


def test_a_host_array_is_where_the_active_backend_puts_it(backend: Backend) -> None:
    assert ops.get_device(np.ones(3)) == ops.get_default_device()


@pytest.fixture
def second(monkeypatch: pytest.MonkeyPatch) -> Iterator[Backend]:
    """torch, active, with two devices on any machine: tensors on ``meta`` have a shape and a dtype, but no values."""
    pytest.importorskip("torch", reason="no other engine has a second device on every machine")
    backend = backends.load("torch")
    monkeypatch.setattr(backend.core, "devices", lambda: ["cpu", "meta"])
    ember_ml.set_backend("torch")
    ops.set_default_device("cpu")
    yield backend
    ember_ml.set_backend("numpy")


def devices_of(result: Any) -> set[str]:
    """The devices of the tensors in a result, portable ones too."""
    found = [getattr(leaf, "native", leaf) for _, leaf in leaves(result)]
    return {ops.get_device(leaf) for leaf in found if ops.is_tensor(leaf)}


def on_cpu(call: Call) -> Call:
    """The call with its arrays as tensors on the CPU, whatever the default device."""
    return call.map(lambda array: ops.asarray(array, device="cpu"))


def with_device(operation: Operation, call: Call, device: str, function: Any = None) -> Any:
    """The result of a call that asks for a device, of the operation or another function of the same parameters."""
    name = next(p.name for p in operation.parameters if p.role == DEVICE)
    bound = inspect.signature(operation.call).bind(*call.args, **call.kwargs)
    bound.arguments[name] = device
    return (function or operation.call)(*bound.args, **bound.kwargs)


PLACED = [o for o in REGISTRY.values() if any(p.role == DEVICE for p in o.parameters)]
MAKERS = [o for o in PLACED if o.name not in ("synchronize", "memory_usage", "memory_info")]
# Draws read the values of their parameters, which tensors on meta have not.
DRAWS = [o for o in MAKERS if o.category == "random"]


@pytest.mark.parametrize("operation", PLACED, ids=lambda operation: operation.name)
def test_an_operation_refuses_an_absent_device(operation: Operation, backend: Backend) -> None:
    with pytest.raises(ValueError, match="device must be one of cpu"):
        with_device(operation, calls(operation)[0].map(ops.asarray), "abacus")


@pytest.mark.parametrize("operation", [o for o in MAKERS if o not in DRAWS], ids=lambda operation: operation.name)
def test_the_result_is_on_the_device_that_is_asked_for(operation: Operation, second: Backend) -> None:
    for call in calls(operation):
        assert devices_of(with_device(operation, on_cpu(call), "meta")) == {"meta"}


@pytest.mark.parametrize("operation", DRAWS, ids=lambda operation: operation.name)
def test_a_draw_is_made_on_the_device_that_is_asked_for(operation: Operation, second: Backend) -> None:
    for call in calls(operation):
        ops.set_seed(3)
        expected = operation.call(*call.args, **call.kwargs)
        ops.set_default_device("meta")
        ops.set_seed(3)
        found = with_device(operation, call, "cpu")
        ops.set_default_device("cpu")
        assert devices_of(found) == {"cpu"}
        assert_same(found, expected)


def computed_with_default(default: str, compute: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What a function of tensors on the CPU returns while a device is the default one."""
    ops.set_default_device(default)
    ops.set_seed(3)
    try:
        return compute(*args, **kwargs)
    finally:
        ops.set_default_device("cpu")


def assert_default_device_does_not_matter(compute: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    expected = computed_with_default("cpu", compute, *args, **kwargs)
    found = computed_with_default("meta", compute, *args, **kwargs)
    assert devices_of(found) <= {"cpu"}
    assert_same(found, expected)


def test_a_tensor_stays_on_its_device(second: Backend) -> None:
    x = ops.asarray([1.0, 2.0], device="cpu")
    for convert in (ops.asarray, ops.from_dlpack, lambda x: tensor.asarray(x).native, lambda x: ops.asarray([x, x])):
        assert_default_device_does_not_matter(convert, x)


def test_a_draw_is_made_where_its_parameters_are(second: Backend) -> None:
    mean = ops.asarray([1.0, 2.0], device="cpu")
    assert_default_device_does_not_matter(lambda: ops.random_normal((2,), mean, key=3))


def test_what_numpy_computes_for_an_engine_is_put_on_the_device_that_is_asked_for(
    second: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("no kernel")

    monkeypatch.setitem(REGISTRY["zeros_like"].runs, "torch", refuse)
    x = ops.asarray(np.ones(2, np.uint16), device="cpu")
    assert devices_of(ops.zeros_like(x, device="meta")) == {"meta"}


def takes_tensors(call: Call) -> bool:
    found: list[np.ndarray] = []
    call.map(found.append)
    return bool(found)


# These put what they are given on the default device, or are about devices.
FROM_ANYTHING = {"asarray", "from_dlpack", "from_numpy", "full"}


@pytest.mark.parametrize(
    "operation",
    [
        operation
        for operation in REGISTRY.values()
        if operation.tensors and operation.category not in ("device", "io") and operation.name not in FROM_ANYTHING
    ],
    ids=lambda operation: operation.name,
)
def test_an_operation_computes_where_its_tensors_are(operation: Operation, second: Backend) -> None:
    """Whatever it makes besides, it makes on their device, and not on the default one."""
    for call in filter(takes_tensors, calls(operation)):
        if not given(operation, "VARIES"):
            native = on_cpu(call)
            assert_default_device_does_not_matter(operation.call, *native.args, **native.kwargs)


@pytest.mark.parametrize("case", CASES)
def test_a_layer_computes_where_its_tensors_are(case: str, second: Backend) -> None:
    make, arguments = CASES[case]
    ops.set_seed(1)
    layer = make()
    assert_default_device_does_not_matter(layer, *(ops.asarray(x, device="cpu") for x in arguments))


OPTIMIZERS = [
    optimizer
    for optimizer in vars(optim).values()
    if isinstance(optimizer, type) and issubclass(optimizer, optim.Optimizer) and optimizer is not optim.Optimizer
]


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_an_optimizer_computes_where_the_parameters_are(optimizer: Any, second: Backend) -> None:
    first = {"weight": ops.asarray(np.arange(6.0, dtype=np.float32).reshape(2, 3), device="cpu")}

    def train() -> Any:
        rule, parameters = optimizer(0.1), first
        for _ in range(2):
            parameters = rule.update(parameters, first)
        return parameters

    assert_default_device_does_not_matter(train)


FITTED: dict[str, Callable[[Any], Any]] = {
    "PCA": lambda rows: features.PCA(2).fit_transform(rows),
    "PCA, randomized": lambda rows: features.PCA(2, svd_solver="randomized").fit_transform(rows),
    "PCA, covariance": lambda rows: features.PCA(2).fit(rows).get_covariance(),
    "Whitening": lambda rows: features.Whitening().fit_transform(rows),
    "StandardScaler": lambda rows: features.StandardScaler().fit_transform(rows),
    "MinMaxScaler": lambda rows: features.MinMaxScaler().fit_transform(rows),
    "RobustScaler": lambda rows: features.RobustScaler().fit_transform(rows),
}


@pytest.mark.parametrize("case", FITTED)
def test_features_are_fitted_where_the_rows_are(case: str, second: Backend) -> None:
    rows = ops.asarray(np.random.default_rng(0).standard_normal((12, 3)).astype(np.float32), device="cpu")
    assert_default_device_does_not_matter(FITTED[case], rows)


@pytest.mark.parametrize(
    "metric", [metrics.TopKAccuracy(2), metrics.SparseCategoricalAccuracy(), metrics.F1(average="macro")]
)
def test_metrics_are_computed_where_the_predictions_are(metric: Any, second: Backend) -> None:
    scores = ops.asarray(np.eye(4, 3, dtype=np.float32), device="cpu")
    labels = ops.asarray([0, 2, 2, 1], device="cpu")

    def measured() -> Any:
        metric.reset()
        metric.update(labels, scores)
        return metric.compute()

    assert_default_device_does_not_matter(measured)


def test_derivatives_are_made_where_the_tensors_are(second: Backend) -> None:
    x = ops.asarray([1.0, 2.0], device="cpu")
    for derivative in (transform.grad, transform.hessian, transform.jacobian):
        assert_default_device_does_not_matter(derivative(lambda x: ops.sum(ops.power(x, 3.0))), x)


@pytest.mark.parametrize(
    "operation", [o for o in MAKERS if hasattr(tensor, o.name) and o not in DRAWS], ids=lambda operation: operation.name
)
def test_portable_tensors_are_made_on_the_device_that_is_asked_for(operation: Operation, second: Backend) -> None:
    function = getattr(tensor, operation.name)
    assert devices_of(with_device(operation, on_cpu(calls(operation)[0]), "meta", function)) == {"meta"}


def test_a_portable_tensor_is_on_the_device_that_it_is_given(second: Backend) -> None:
    native = ops.asarray([1.0, 2.0], device="cpu")
    for source in ([1.0, 2.0], native, tensor.EmberTensor(native)):
        assert tensor.EmberTensor(source).device == "cpu"
        assert tensor.EmberTensor(source, device="meta").device == "meta"
        assert tensor.EmberTensor(source, "float64", "meta").device == "meta"
    assert tensor.EmberTensor(native).to("meta").device == "meta"
    assert tensor.EmberTensor(native).to_device("meta").device == "meta"


def test_a_portable_tensor_is_restored_on_its_device(second: Backend) -> None:
    written = pickle.dumps(tensor.EmberTensor([1.0, 2.0], device="cpu"))
    ops.set_default_device("meta")
    found = pickle.loads(written)
    assert found.device == "cpu"
    assert found.tolist() == [1.0, 2.0]


def test_a_module_moves_with_all_its_tensors(second: Backend) -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm(4))
    assert devices_of(list(model.state_dict().values())) == {"cpu"}
    assert model.to("meta") is model
    assert devices_of(list(model.state_dict().values())) == {"meta"}


def test_what_is_loaded_into_a_module_goes_where_its_tensors_are(second: Backend) -> None:
    model = nn.Linear(3, 4)
    state = {name: ops.ones_like(value) for name, value in model.state_dict().items()}
    model.to("meta").load_state_dict(state)
    assert devices_of(list(model.state_dict().values())) == {"meta"}


def test_features_move_with_all_their_tensors(second: Backend) -> None:
    fitted = features.StandardScaler().fit(np.eye(4, 3, dtype=np.float32))
    assert devices_of(list(fitted.tensors().values())) == {"cpu"}
    assert devices_of(list(fitted.to("meta").tensors().values())) == {"meta"}


@pytest.mark.parametrize("shuffle", [False, True])
def test_batches_are_on_the_device_that_is_asked_for(shuffle: bool, second: Backend) -> None:
    x, y = np.ones((6, 3), np.float32), np.arange(6.0, dtype=np.float32)
    for default, device in (("cpu", "meta"), ("meta", "cpu")):
        ops.set_default_device(default)
        for data in (as_data(x, y, 2, device), as_data([(x, y)], None, 2, device)):
            batches = list(data.batches(shuffle))
            assert devices_of(batches) == {device}
            assert device == "meta" or sorted(n for _, part in batches for n in part.tolist()) == y.tolist()
