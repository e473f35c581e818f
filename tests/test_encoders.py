"""BERT, RoBERTa, ViT and ResNet: the results of transformers with the same weights, on every engine."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from ember_ml import models, ops, transform

transformers = pytest.importorskip("transformers", reason="transformers is the reference of these models")
torch = pytest.importorskip("torch", reason="transformers computes with torch")

TEXT = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 40, "vocab_size": 31}
IMAGE = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 33}

# Class of transformers, and the configuration; the first three of each architecture differ in everything that matters.
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("BertModel", {**TEXT, "max_position_embeddings": 19, "type_vocab_size": 3}),
    "bert-untied": (
        "BertForMaskedLM",
        {**TEXT, "hidden_act": "relu", "tie_word_embeddings": False, "layer_norm_eps": 1e-3},
    ),
    "bert-masked": ("BertForMaskedLM", {**TEXT, "hidden_size": 30, "num_attention_heads": 5, "vocab_size": 37}),
    "bert-classifier": ("BertForSequenceClassification", {**TEXT, "hidden_act": "gelu_new", "num_labels": 5}),
    "roberta": ("RobertaModel", {**TEXT, "max_position_embeddings": 23, "pad_token_id": 4, "type_vocab_size": 1}),
    "roberta-masked": ("RobertaForMaskedLM", {**TEXT, "hidden_act": "relu", "pad_token_id": 0}),
    "roberta-classifier": ("RobertaForSequenceClassification", {**TEXT, "num_attention_heads": 6, "num_labels": 1}),
    "vit": ("ViTModel", {**IMAGE, "image_size": 16, "patch_size": 5, "num_channels": 1, "pooler_output_size": 7}),
    "vit-oblong": (
        "ViTForImageClassification",
        {**IMAGE, "image_size": [18, 16], "patch_size": [6, 4], "qkv_bias": False, "num_labels": 3},
    ),
    "vit-classifier": (
        "ViTForImageClassification",
        {**IMAGE, "hidden_size": 48, "hidden_act": "gelu_new", "image_size": 32, "patch_size": 16},
    ),
    "resnet-basic": (
        "ResNetModel",
        {"embedding_size": 5, "hidden_sizes": [6, 9], "depths": [2, 1], "layer_type": "basic", "hidden_act": "silu"},
    ),
    "resnet-bottleneck": (
        "ResNetForImageClassification",
        {"embedding_size": 8, "hidden_sizes": [8, 12, 20], "depths": [1, 2, 1], "num_labels": 4},
    ),
    "resnet-downsampled": (
        "ResNetForImageClassification",
        {
            "embedding_size": 6,
            "hidden_sizes": [12, 16],
            "depths": [1, 1],
            "num_channels": 2,
            "downsample_in_first_stage": True,
            "downsample_in_bottleneck": True,
        },
    ),
}


class Reference(NamedTuple):
    """Folder of a model, inputs of a call, and what transformers returns."""

    folder: Path
    inputs: dict[str, Any]
    outputs: list[Any]
    states: list[Any]
    # Largest error of transformers in bfloat16.
    error: float


@pytest.fixture(scope="module")
def references(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return cache(lambda case: _reference(case, tmp_path_factory.mktemp(case)))


def _reference(case: str, folder: Path) -> Reference:
    kind, options = CASES[case]
    model = _randomized(_class(kind)(_class(kind).config_class(**options)))
    model.save_pretrained(folder)
    generator = np.random.default_rng(7)
    if "vocab_size" in options:
        tokens = generator.integers(5, options["vocab_size"], (3, 11))
        mask = np.ones((3, 11), np.int64)
        mask[1, 7:] = mask[2, 3:] = 0
        tokens[mask == 0] = model.config.pad_token_id
        inputs = {"input_ids": tokens, "attention_mask": mask}
        if model.config.type_vocab_size > 1:
            inputs["token_type_ids"] = generator.integers(0, model.config.type_vocab_size, (3, 11))
    else:
        size = options.get("image_size", 21)
        height, width = (size, size) if isinstance(size, int) else size
        inputs = {"pixel_values": generator.normal(size=(2, height, width, model.config.num_channels)).astype("f4")}
    outputs, states = _outputs(model, inputs)
    narrow, _ = _outputs(model.to(torch.bfloat16), inputs)
    error = max(float(np.abs(a - b).max()) for a, b in zip(outputs, narrow, strict=True))
    return Reference(folder, inputs, outputs, states, error)


def _class(name: str) -> Any:
    return getattr(transformers, name)


def _randomized(model: Any) -> Any:
    """The model in evaluation mode, with random values in all tensors, those of normalizations too."""
    torch.manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
        for name, buffer in model.named_buffers():
            if name.endswith("running_mean"):
                buffer.normal_(0.0, 0.3)
            elif name.endswith("running_var"):
                buffer.uniform_(0.5, 2.0)
            elif name.endswith("num_batches_tracked"):
                buffer.fill_(7)
    return model.eval()


def _outputs(model: Any, inputs: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    """Outputs and hidden states of transformers in float32, with channels last."""
    given = {name: torch.tensor(x) for name, x in inputs.items()}
    if "pixel_values" in given:
        given["pixel_values"] = given["pixel_values"].permute(0, 3, 1, 2).to(model.dtype)
    with torch.no_grad():
        found = model(**given, output_hidden_states=True)
    main = [found.logits] if "logits" in found else [found.last_hidden_state, found.pooler_output]
    return [_channels_last(x) for x in main], [_channels_last(x) for x in found.hidden_states]


def _channels_last(x: Any) -> Any:
    array = x.float().numpy()
    if array.ndim < 4:
        return array
    # The mean over height and width has axes of length 1.
    return array[:, :, 0, 0] if array.shape[2:] == (1, 1) else array.transpose(0, 2, 3, 1)


def _call(model: Any, inputs: dict[str, Any], dtype: str = "float32") -> tuple[list[Any], list[Any]]:
    """Outputs and hidden states of a model of this library."""
    given = {name: ops.asarray(x) for name, x in inputs.items()}
    images = given.pop("pixel_values", None)
    x = given if images is None else ops.cast(images, dtype)
    # JAX compiles each operation otherwise, which takes longer than one program.
    wrap = transform.compile if model.backend == "jax" else lambda function: function
    main, states = wrap(lambda model, x: model(x, hidden_states=True))(model, x)
    main = list(main) if isinstance(main, (tuple, list)) else [main]
    return [_numpy(y) for y in main], [_numpy(y) for y in states]


def _numpy(x: Any) -> Any:
    return ops.to_numpy(ops.cast(x, "float32"))


def _distance(found: list[Any], expected: list[Any]) -> float:
    assert [x.shape for x in found] == [x.shape for x in expected]
    return max(float(np.abs(a - b).max()) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("case", CASES)
def test_a_model_returns_what_transformers_does(backend: Any, case: str, references: Any) -> None:
    reference = references(case)
    model = models.load(reference.folder)
    assert model.backend == backend.name
    assert not model.training
    outputs, states = _call(model, reference.inputs)
    if "resnet" in case and len(outputs) == 2:
        outputs[0] = outputs[0] if outputs[0].shape[1:3] != (1, 1) else outputs[0][:, 0, 0]
    states = [x[:, 0, 0] if x.ndim == 4 and x.shape[1:3] == (1, 1) else x for x in states]
    assert _distance(outputs, reference.outputs) <= 1e-4
    assert _distance(states, reference.states) <= 1e-4


@pytest.mark.parametrize("case", CASES)
def test_saved_weights_are_those_that_transformers_wrote(
    backend: Any, case: str, references: Any, tmp_path: Path
) -> None:
    reference = references(case)
    models.save(models.load(reference.folder), tmp_path)
    kind, _ = CASES[case]
    model, info = _class(kind).from_pretrained(tmp_path, output_loading_info=True)
    unused = {"cls.predictions.bias"} if case == "bert-untied" else set()
    assert set(info["missing_keys"]) <= unused
    assert not info["unexpected_keys"]
    outputs, _ = _outputs(model.eval(), reference.inputs)
    assert _distance(outputs, reference.outputs) <= 1e-6
    written, given = (json.loads((folder / "config.json").read_text()) for folder in (tmp_path, reference.folder))
    assert written["architectures"] == given["architectures"] == [kind]


@pytest.mark.parametrize("case", ["bert-masked", "roberta", "vit-classifier", "resnet-bottleneck"])
def test_bfloat16_is_as_precise_as_in_transformers(backend: Any, case: str, references: Any) -> None:
    reference = references(case)
    model = models.load(reference.folder, dtype="bfloat16")
    outputs, _ = _call(model, reference.inputs, "bfloat16")
    largest = max(float(np.abs(x).max()) for x in reference.outputs)
    assert _distance(outputs, reference.outputs) <= 2 * reference.error + largest * 2**-8
