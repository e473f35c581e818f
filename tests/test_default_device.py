"""The default device: the engine's best, or what the program, the environment or the user's file chooses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ember_ml
from ember_ml import backend as backends
from ember_ml import cli, nn, ops, training, transform
from ember_ml.backend import Backend, clear_backend, set_backend, use_backend
from ember_ml.errors import DeviceNotFoundError
from ember_ml.nn import features, tensor
from ember_ml.ops import random

torch = pytest.importorskip("torch", reason="the engine with a device that needs no hardware")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def best(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Backend]:
    """torch on a machine whose best device is ``meta``, with nothing chosen."""
    loaded = backends.load("torch")
    for place in (loaded, loaded.core):
        monkeypatch.setattr(place, "devices", lambda: ["cpu", "meta"])
    monkeypatch.delenv("EMBER_ML_DEVICE", raising=False)
    before = loaded.chosen_device
    loaded.choose_device(None)
    clear_backend()
    set_backend("torch")
    yield loaded
    monkeypatch.undo()
    loaded.choose_device(before)
    clear_backend()
    set_backend("numpy")


def kept(home: Path, text: str) -> None:
    (home / ".ember").mkdir(exist_ok=True)
    (home / ".ember" / "backend").write_text(text, encoding="utf-8")
    clear_backend()


def chosen() -> tuple[str, str]:
    return ops.get_default_device(), backends.current().device_choice().source


def test_it_is_the_best_device_of_the_engine(best: Backend) -> None:
    assert chosen() == ("meta", "detection")
    assert ops.get_device() == "meta"
    assert backends.auto_select_backend() == ("torch", "meta")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["cpu"], "cpu"),
        (["cpu", "mps", "mps:0"], "mps"),
        (["cpu", "mps", "cuda", "cuda:0", "cuda:1"], "cuda"),
        (["cpu", "gpu"], "gpu"),
        (["cpu", "tpu"], "tpu"),
    ],
)
def test_the_order_of_devices(names: list[str], expected: str) -> None:
    assert backends.best_device(names) == expected


def test_the_order_of_choice(best: Backend, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept(home, "torch cpu\n")
    assert ember_ml.get_backend() == "torch"
    assert chosen() == ("cpu", f"file {home / '.ember' / 'backend'}")
    monkeypatch.setenv("EMBER_ML_DEVICE", " meta ")
    clear_backend()
    assert chosen() == ("meta", "environment variable EMBER_ML_DEVICE")
    with torch.device("cpu"):
        assert chosen() == ("cpu", "torch's own default device")
        set_backend("torch", device="meta")
        assert chosen() == ("meta", "set_backend")
        ops.set_default_device("cpu")
        assert chosen() == ("cpu", "set_default_device")
        with use_backend("torch", device="meta"):
            assert chosen() == ("meta", "use_backend")
            with use_backend("torch"):
                assert chosen() == ("meta", "use_backend"), "the device of the block around it"
                with use_backend("torch", device="cpu"):
                    assert chosen() == ("cpu", "use_backend")
            ops.set_default_device("meta")
        assert chosen() == ("meta", "set_default_device")
        ops.set_default_device(None)
        assert chosen() == ("cpu", "torch's own default device")
    assert chosen() == ("meta", "environment variable EMBER_ML_DEVICE")


def test_set_default_device_of_torch_counts(best: Backend) -> None:
    torch.set_default_device("cpu")
    try:
        assert chosen() == ("cpu", "torch's own default device")
        assert ops.get_device(ops.zeros(2)) == "cpu"
    finally:
        torch.set_default_device(None)
    assert chosen() == ("meta", "detection")


def test_set_backend_without_a_device_leaves_it(best: Backend) -> None:
    set_backend("torch", device="cpu")
    set_backend("numpy")
    set_backend("torch")
    assert chosen() == ("cpu", "set_backend")
    clear_backend()
    set_backend("torch")
    assert chosen() == ("meta", "detection")
    ops.set_default_device("cpu")
    clear_backend()
    set_backend("torch")
    assert chosen() == ("cpu", "set_default_device")


def test_the_file_is_about_the_backend_that_it_names(best: Backend, home: Path) -> None:
    kept(home, "numpy cpu\n")
    set_backend("torch")
    assert chosen() == ("meta", "detection")
    kept(home, "torch cpu\n")
    set_backend("torch")
    assert chosen() == ("cpu", f"file {home / '.ember' / 'backend'}")


def test_a_file_that_cannot_be_read_names_no_device(best: Backend, home: Path) -> None:
    kept(home, "x" * 1000)
    set_backend("torch")
    assert chosen() == ("meta", "detection")


def test_persisting_keeps_the_device(best: Backend, home: Path) -> None:
    set_backend("torch", persist=True, device="cpu")
    assert (home / ".ember" / "backend").read_text(encoding="utf-8") == "torch cpu\n"
    clear_backend()
    assert ember_ml.get_backend() == "torch"
    assert chosen() == ("cpu", f"file {home / '.ember' / 'backend'}")
    set_backend("torch", persist=True)
    assert (home / ".ember" / "backend").read_text(encoding="utf-8") == "torch\n"
    assert chosen() == ("meta", "detection")


def test_an_absent_device_raises_and_says_who_asked(best: Backend, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = "device must be one of cpu, meta on the torch backend, got 'cuda'"
    with pytest.raises(DeviceNotFoundError, match=f"^set_backend: {listed}"):
        set_backend("torch", device="cuda")
    with pytest.raises(DeviceNotFoundError, match=f"^use_backend: {listed}"), use_backend("torch", device="cuda"):
        pytest.fail("the block must not be entered")
    with pytest.raises(ValueError, match=f"^set_default_device: {listed}"):
        ops.set_default_device("cuda")
    kept(home, "torch cuda\n")
    with pytest.raises(DeviceNotFoundError, match=rf"file .*backend: {listed}"):
        ops.zeros(2)
    monkeypatch.setenv("EMBER_ML_DEVICE", "cuda")
    clear_backend()
    set_backend("torch")
    for use in (lambda: ops.zeros(2), lambda: ops.asarray([1.0]), lambda: ops.add(1.0, 2.0), lambda: random.key(1)):
        with pytest.raises(DeviceNotFoundError, match=f"environment variable EMBER_ML_DEVICE: {listed}"):
            use()
    x = torch.ones(2)
    assert ops.add(x, 1.0).tolist() == [2.0, 2.0], "tensors compute where they are"
    ops.set_default_device("cpu")
    assert ops.zeros(2).tolist() == [0.0, 0.0]


def test_numpy_has_one_device(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBER_ML_DEVICE", "cuda")
    clear_backend()
    set_backend("numpy")
    assert ops.get_device(ops.zeros(2)) == "cpu"
    clear_backend()
    monkeypatch.setattr(backends, "get_available_backends", lambda: ["numpy"])
    with pytest.raises(DeviceNotFoundError, match="EMBER_ML_DEVICE: device must be one of cpu on the numpy backend"):
        ops.zeros(2)
    monkeypatch.undo()
    clear_backend()
    set_backend("numpy")


class Affine(nn.Module):
    """A module with a parameter, a buffer and a submodule."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 4)
        self.norm = nn.BatchNorm(4)

    def __call__(self, x: Any) -> Any:
        return self.norm(self.inner(x))


ARRAY = np.ones((2, 3), np.float32)

CREATED = {
    "asarray of a list": lambda: ops.asarray([1.0, 2.0]),
    "asarray of a number": lambda: ops.asarray(1.0),
    "asarray of an array": lambda: ops.asarray(ARRAY),
    "convert_to_tensor": lambda: ops.convert_to_tensor(ARRAY),
    "EmberTensor of a list": lambda: tensor.EmberTensor([1.0]).native,
    "EmberTensor of an array": lambda: tensor.EmberTensor(ARRAY).native,
    "nn.tensor": lambda: tensor.zeros((2,)).native,
    "an operation on lists": lambda: ops.add([1.0], 2.0),
    "an operation on an array": lambda: ops.sum(ARRAY, axis=0),
    "arange": lambda: ops.arange(3),
    "eye": lambda: ops.eye(3),
    "uniform": lambda: random.uniform((2,)),
    "normal": lambda: random.normal((2,)),
    "randint": lambda: random.randint((2,), 0, 5),
    "permutation": lambda: random.permutation(4),
    "key": lambda: random.key(3),
    "a gradient": lambda: transform.grad(ops.sum)([1.0, 2.0]),
    "a layer": lambda: nn.Linear(3, 4)(ARRAY),
    "a dropout of a layer": lambda: nn.Dropout(0.5)(ARRAY),
}


@pytest.mark.parametrize("case", CREATED)
def test_everything_from_the_host_goes_there(case: str, best: Backend) -> None:
    assert ops.get_device(CREATED[case]()) == "meta"


def test_a_module_is_created_there(best: Backend) -> None:
    model = Affine()
    assert {ops.get_device(x) for x in model.state_dict().values()} == {"meta"}
    assert ops.get_device(model(ARRAY)) == "meta"


def test_files_are_loaded_there(best: Backend, tmp_path: Path) -> None:
    with use_backend("torch", device="cpu"):
        ops.save(tmp_path / "x.safetensors", {"x": ops.ones(2)})
    assert ops.get_device(ops.load(tmp_path / "x.safetensors")["x"]) == "meta"
    assert ops.get_device(ops.load(tmp_path / "x.safetensors", device="cpu")["x"]) == "cpu"


def test_what_computes_on_the_cpu_stays_there(best: Backend) -> None:
    with use_backend("torch", device="cpu"):
        model, scaler = Affine(), features.StandardScaler().fit(ARRAY)
        x = ops.asarray(ARRAY)
    assert ops.get_device(model(x)) == "cpu"
    assert ops.get_device(scaler.transform(x)) == "cpu"
    trainer = training.Trainer(model, ops.mean_squared_error, ember_ml.optim.SGD(0.1))
    trainer.fit(np.ones((4, 3), np.float32), np.ones((4, 4), np.float32), epochs=1, batch_size=2)
    assert {ops.get_device(one) for one in model.state_dict().values()} == {"cpu"}


def test_a_block_is_for_its_thread(best: Backend) -> None:
    from threading import Thread

    found: list[str] = []
    with use_backend("torch", device="cpu"):
        thread = Thread(target=lambda: found.append(chosen()[0]))
        thread.start()
        thread.join()
        assert chosen()[0] == "cpu"
    assert found == ["meta"]


@use_backend("torch", device="cpu")
def decorated() -> str:
    return ops.get_default_device()


def test_a_function_is_decorated_with_a_device(best: Backend) -> None:
    assert decorated() == "cpu"


def test_compiled_code_creates_where_the_device_is_now(best: Backend) -> None:
    compiled = torch.compile(lambda: ops.zeros(3), backend="eager", fullgraph=True)
    ops.set_default_device("cpu")
    assert ops.get_device(compiled()) == "cpu"
    ops.set_default_device("meta")
    assert ops.get_device(compiled()) == "meta"
    ops.set_default_device(None)
    assert ops.get_device(compiled()) == "meta"


def test_info_says_which_and_why(best: Backend, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["info"]) == 0
    assert "default device: meta, the best one of torch\n" in capsys.readouterr().out
    assert cli.main(["backend", "set", "torch", "--device", "cpu"]) == 0
    path = home / ".ember" / "backend"
    assert capsys.readouterr().out == f"torch on cpu is the default from now on ({path})\n"
    clear_backend()
    for command in (["info"], ["backend", "show"]):
        assert cli.main(command) == 0
        assert f"default device: cpu, by file {path}\n" in capsys.readouterr().out
        assert cli.main([*command, "--json"]) == 0
        facts = json.loads(capsys.readouterr().out)
        assert (facts["device"], facts["device_source"]) == ("cpu", f"file {path}")
    set_backend("numpy")
    assert cli.main(["info"]) == 0
    assert "default device: cpu, the only one of numpy\n" in capsys.readouterr().out


def test_the_command_line_says_which_devices_there_are(
    best: Backend, home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = "device must be one of cpu, meta on the torch backend, got 'cuda'"
    assert cli.main(["backend", "set", "torch", "--device", "cuda"]) == 2
    assert capsys.readouterr().err == f"ember-ml: error: ember-ml backend set: {listed}\n"
    assert not (home / ".ember").exists()
    monkeypatch.setenv("EMBER_ML_DEVICE", "cuda")
    clear_backend()
    set_backend("torch")
    for command in ("info", "backend"):
        assert cli.main([command]) == 2
        assert f"environment variable EMBER_ML_DEVICE: {listed}\n" in capsys.readouterr().err
    cli.main(["backend", "set", "torch", "--device", "cpu"])
    assert capsys.readouterr().err == "ember-ml: note: EMBER_ML_DEVICE=cuda goes before that file\n"


def test_mps_is_a_device_without_float64(best: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    core = best.core
    monkeypatch.undo()
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setattr(core, "_warned", set())
    assert core.devices()[:3] == ["cpu", "mps", "mps:0"], "tensors on mps say that they are on mps:0"
    mps = torch.device("mps")
    with pytest.warns(ember_ml.errors.PrecisionWarning, match="no float64 on this device: .* becomes float32"):
        assert core.narrower(torch.float64, mps) is torch.float32
    assert core.narrower(torch.float64, mps) is torch.float32, "with one warning"
    assert core.narrower(torch.float32, mps) is None
    assert core.narrower(torch.float64, torch.device("cpu")) is None
    refused = TypeError("Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64.")
    assert core.error_class(refused) is ember_ml.UnsupportedError
    best.choose_device(backends.DeviceChoice(mps, "a test"))
    assert not best.has_float64()


def test_engines_without_the_device_are_deselected(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
        from ember_ml import backend
        pytest_plugins = ["ember_ml.testing.plugin"]
        torch = backend.load("torch")
        torch.devices = torch.core.devices = lambda: ["cpu", "meta"]
        """
    )
    pytester.makepyfile(
        """
        from ember_ml import ops

        def test_of_an_engine(backend, device):
            assert ops.get_device(ops.zeros(2)) == device == "meta"

        def test_of_none():
            pass
        """
    )
    result = pytester.runpytest_subprocess("--device", "meta", "-p", "no:cacheprovider")
    others = [name for name in ember_ml.get_available_backends() if name != "torch"]
    result.assert_outcomes(passed=2, deselected=len(others))
    result.stdout.fnmatch_lines([f"--device meta: {len(others)} tests of {', '.join(others)} are deselected"])
