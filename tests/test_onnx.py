"""ONNX files: onnxruntime computes what the model does."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ember_ml
from ember_ml import export, nn, ops
from ember_ml.errors import UnsupportedError

torch = pytest.importorskip("torch", reason="torch writes the files")
pytest.importorskip("onnxscript", reason="torch's exporter requires it")
runtime = pytest.importorskip("onnxruntime", reason="it computes with the files")


class Transformer(nn.Module):
    def __init__(self) -> None:
        self.embedding = nn.Embedding(11, 8)
        self.position = nn.PositionalEmbedding(8, 16)
        self.encoder = nn.TransformerEncoder(1, 8, 2, 16)
        self.out = nn.Linear(8, 11)

    def forward(self, x: Any) -> Any:
        return self.out(self.encoder(self.position(self.embedding(x)), is_causal=True))


def mlp() -> Any:
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 3))


def cnn() -> Any:
    layers = nn.Conv2d(1, 4, 3, padding="same"), nn.BatchNorm(4), nn.ReLU(), nn.MaxPool2d(2)
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(36, 3))


MODELS = {
    # An example of one row: the batch is dynamic all the same.
    "mlp": (mlp, np.ones((1, 4), np.float32), "jax"),
    "cnn": (cnn, np.linspace(-1, 1, 72, dtype=np.float32).reshape(2, 6, 6, 1), "mlx"),
    "transformer": (Transformer, np.arange(10).reshape(2, 5), "numpy"),
}


# The engine of the model matters little to the exporter, which takes seconds: one engine for each model.
@pytest.mark.parametrize("name", MODELS)
def test_onnxruntime_computes_the_same(name: str, tmp_path: Path) -> None:
    make, example, engine = MODELS[name]
    with ember_ml.use_backend(engine if engine in ember_ml.get_available_backends() else "numpy"):
        ops.random.set_seed(0)
        model = make()
        path = export.onnx(model, example, tmp_path / "folder" / "model.onnx")
        # It is exported for evaluation, and is left in training mode.
        assert model.training
        rows = np.concatenate([example] * 5)[:5]
        expected = ops.to_numpy(model.eval()(ops.asarray(rows)))
    session = runtime.InferenceSession(str(path))
    assert [(x.name, x.shape[0]) for x in (*session.get_inputs(), *session.get_outputs())] == [
        ("x", "batch"),
        ("y", "batch"),
    ]
    (found,) = session.run(None, {"x": rows})
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    assert [file.name for file in path.parent.iterdir()] == ["model.onnx"]


def test_several_inputs_and_fixed_shapes(tmp_path: Path) -> None:
    class Both(nn.Module):
        def forward(self, x: Any, y: Any) -> Any:
            return ops.add(x, y), ops.subtract(x, y)

    with ember_ml.use_backend("numpy"):
        path = export.onnx(
            Both(),
            (np.ones(3, np.float32), np.ones((2, 3), np.float32)),
            tmp_path / "model.onnx",
            input_names=["left", "right"],
            output_names=["sum", "difference"],
            dynamic_batch=False,
        )
    session = runtime.InferenceSession(str(path))
    left, right = np.full(3, 2, np.float32), np.full((2, 3), 5, np.float32)
    both, apart = session.run(["sum", "difference"], {"left": left, "right": right})
    assert (both.tolist(), apart.tolist()) == ([[7.0] * 3] * 2, [[-3.0] * 3] * 2)


class Sums(nn.Module):
    """Two outputs, and a tensor that ``forward`` creates on the default device."""

    def forward(self, x: Any) -> Any:
        return ops.add(x, ops.arange(3.0)), ops.sum(x, axis=-1)


def test_outputs_have_numbers_and_the_default_device_does_not_matter(tmp_path: Path) -> None:
    # The device meta is not the CPU, as a GPU would be.
    with ember_ml.use_backend("torch"), torch.device("meta"):
        path = export.onnx(Sums(), np.ones((1, 3), np.float32), tmp_path / "model.onnx", opset=20)
    session = runtime.InferenceSession(str(path))
    assert [x.name for x in session.get_outputs()] == ["y0", "y1"]
    found = session.run(None, {"x": np.ones((2, 3), np.float32)})
    assert [x.tolist() for x in found] == [[[1.0, 2.0, 3.0]] * 2, [3.0] * 2]


def test_what_cannot_be_traced_is_a_short_error(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    class Branch(nn.Module):
        def forward(self, x: Any) -> Any:
            return ops.negative(x) if float(ops.sum(x)) > 0 else x

    with pytest.raises(
        UnsupportedError, match=r"onnx: .*must be able to trace .*; control flow that depends on values cannot"
    ) as caught:
        export.onnx(Branch(), np.ones((2, 3), np.float32), tmp_path / "model.onnx")
    assert "\x1b" not in f"{caught.value}{caught.value.__cause__}"
    assert len(str(caught.value).splitlines()) == 1
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"opset": 999}, "opset must be from 1 to .*, got 999"),
        ({"output_names": ["a"]}, "output_names must have 2 names, one for each output of the model, got 1"),
        ({"output_names": "ab"}, r"output_names must be a list of names, got the string 'ab'; write \['ab'\]"),
        ({"output_names": ["a", "a"]}, "output_names must be different strings, none empty, got"),
        ({"input_names": "x"}, "input_names must be a list of names, got the string 'x'"),
        ({"input_names": ["y1"]}, "an output must have another name than the inputs, got 'y1' for both"),
        ({"example": {"x": [1.0]}}, "example must be an array or tensor, or a tuple of them, got {.x.: \\[1.0\\]}"),
        ({"example": np.ones((1, 2), np.float32)}, r"the shapes of x and y must broadcast, got \[1, 2\] and \[3\]"),
        ({"path": "."}, "path must be that of a file, got the folder '.'"),
    ],
)
def test_wrong_options_are_found_before_the_export(options: Any, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.onnx, "export", None)
    options = {"example": np.ones((2, 3), np.float32), "path": "model.onnx", **options}
    with ember_ml.use_backend("numpy"), pytest.raises((TypeError, ValueError, OSError), match=message):
        export.onnx(Sums(), **options)


def test_mistakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.onnx"
    with pytest.raises(TypeError, match=r"onnx: model must be an ember_ml.nn.Module, got"):
        export.onnx(object(), [1.0], path)  # type: ignore[arg-type]
    with pytest.raises(
        ValueError, match=r"the first axes of example must have one length, .* got shapes \[3\], \[2, 3\]"
    ):
        export.onnx(nn.Identity(), (np.ones(3), np.ones((2, 3))), path)
    with pytest.raises(ValueError, match="input_names must have 1 names, one for each argument in example, got 2"):
        export.onnx(nn.Identity(), np.ones((2, 3)), path, input_names=["a", "b"])
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "onnxscript" else found(name))
    with pytest.raises(ImportError, match=r"requires onnxscript: pip install 'ember-ml\[onnx\]'"):
        export.onnx(nn.Identity(), np.ones((2, 3)), path)
    assert not path.exists()
