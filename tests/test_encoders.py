"""BERT, RoBERTa, ViT and ResNet: the results of transformers with the same weights, on every engine."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from weakref import ref

import numpy as np
import pytest

from ember_ml import models, nn, ops, optim, training, transform, use_backend

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
    wrap: Any = transform.compile if model.backend == "jax" else lambda function: function
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


def test_positions_are_resized_as_in_transformers(backend: Any, references: Any) -> None:
    folder = references("vit-classifier").folder
    images = np.random.default_rng(5).normal(size=(1, 48, 32, 3)).astype("f4")
    theirs = _class("ViTForImageClassification").from_pretrained(folder).eval()
    with torch.no_grad():
        given = torch.tensor(images).permute(0, 3, 1, 2)
        expected = theirs(given, interpolate_pos_encoding=True).logits.numpy()
    model = models.load(folder)
    assert np.abs(_numpy(model(ops.asarray(images), interpolate=True)) - expected).max() <= 1e-4
    with pytest.raises(ValueError, match=r"images must have shape \(batch, 32, 32, channels\), got \[1, 48, 32, 3\]"):
        model(ops.asarray(images))


def test_arguments_are_those_of_a_tokenizer(backend: Any, references: Any) -> None:
    reference = references("bert-classifier")
    model, given = models.load(reference.folder), {k: ops.asarray(x) for k, x in reference.inputs.items()}
    options = {"mask": given["attention_mask"], "token_types": given["token_type_ids"]}
    assert np.array_equal(_numpy(model(given)), _numpy(model(given["input_ids"], **options)))
    # Arrays and lists go to the engine of the model.
    other = "torch" if backend.name == "numpy" else "numpy"
    with use_backend(other):
        assert np.array_equal(_numpy(model(reference.inputs)), _numpy(model(given)))
        lists = {name: x.tolist() for name, x in reference.inputs.items()}
        assert np.array_equal(_numpy(model(lists)), _numpy(model(given)))
    # A mask hides padding, whatever it is.
    others = ops.where(ops.equal(given["attention_mask"], 0), 9, given["input_ids"])
    assert np.abs(_numpy(model({**given, "input_ids": others})) - _numpy(model(given))).max() <= 1e-5


@pytest.mark.parametrize("case", ["bert-classifier", "bert-masked", "roberta-classifier", "vit-classifier"])
def test_outputs_of_layers_are_kept_only_if_they_are_asked_for(
    case: str, references: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    reference = references(case)
    inputs: list[Any] = []
    alive: list[int] = []
    forward = nn.TransformerEncoderLayer.forward

    def counted(self: Any, x: Any, **options: Any) -> Any:
        inputs.append(ref(x))
        alive.append(sum(one() is not None for one in inputs))
        return forward(self, x, **options)

    monkeypatch.setattr(nn.TransformerEncoderLayer, "forward", counted)
    with use_backend("numpy"):
        model = models.load(reference.folder)
        # The same layers twice, since the cases have too few.
        model.encoder.layers = nn.ModuleList([*model.encoder.layers, *model.encoder.layers])
        given = reference.inputs.get("pixel_values", reference.inputs)
        model(given)
        # The embedding, and the output of the layer before.
        assert alive == [1, 2, 2, 2]
        _, states = model(given, hidden_states=True)
        assert len(states) == 5


def test_sequences_that_are_too_long_are_errors(references: Any) -> None:
    bert, roberta = (models.load(references(case).folder) for case in ("bert", "roberta"))
    with pytest.raises(ValueError, match=r"Bert: tokens must have a length of at most 19, .* got 20"):
        bert(np.full((1, 20), 6))
    with pytest.raises(ValueError, match="tokens must have a length of at most 18"):
        roberta(np.full((1, 19), 6))
    with pytest.raises(ValueError, match=r"tokens must have shape \(batch, length\), got \[4\]"):
        bert([1, 2, 3, 4])


def _rewritten(folder: Path, target: Path, change: Any, **entries: Any) -> Path:
    """Folder with other tensors and other entries of ``config.json``."""
    from safetensors.numpy import load_file, save_file

    save_file(change(load_file(folder / "model.safetensors")), target / "model.safetensors")
    config = json.loads((folder / "config.json").read_text())
    (target / "config.json").write_text(json.dumps({**config, **entries}))
    return target


def test_files_of_early_versions_are_read(references: Any, tmp_path: Path) -> None:
    reference = references("bert-masked")

    def earlier(state: dict[str, Any]) -> dict[str, Any]:
        pairs = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
        for new, old in pairs.items():
            state = {name.replace(new, old): x for name, x in state.items()}
        extra = {
            "bert.embeddings.position_ids": np.arange(512)[None],
            "bert.pooler.dense.bias": np.zeros(30, "f4"),
            "cls.seq_relationship.bias": np.zeros(2, "f4"),
            "cls.predictions.decoder.weight": state["bert.embeddings.word_embeddings.weight"],
        }
        return {**state, **extra}

    outputs, _ = _call(models.load(_rewritten(reference.folder, tmp_path, earlier)), reference.inputs)
    assert _distance(outputs, reference.outputs) <= 1e-4


def _renamed(old: str, new: str) -> Any:
    return lambda state: {new + k.removeprefix(old) if k.startswith(old) else k: x for k, x in state.items()}


def _without(*parts: str) -> Any:
    return lambda state: {k: x for k, x in state.items() if not any(part in k for part in parts)}


@pytest.mark.parametrize(
    ("case", "change"),
    [
        ("bert-masked", _renamed("bert.", "")),
        ("bert-masked", _renamed("cls.predictions.bias", "cls.predictions.decoder.bias")),
        ("roberta-masked", _renamed("lm_head.bias", "lm_head.decoder.bias")),
        ("roberta-classifier", _renamed("roberta.", "")),
        ("vit-classifier", _renamed("vit.", "")),
        ("vit-classifier", lambda state: {**state, "vit.embeddings.mask_token": np.zeros((1, 1, 48), "f4")}),
        ("resnet-bottleneck", _without("num_batches_tracked")),
        ("resnet-basic", _renamed("e", "resnet.e")),
        ("bert", lambda state: {**_renamed("", "bert.")(state), "cls.predictions.bias": np.zeros(31, "f4")}),
        ("roberta", lambda state: {**_renamed("", "roberta.")(state), "lm_head.bias": np.zeros(31, "f4")}),
        ("vit", lambda state: {**_renamed("", "vit.")(state), "classifier.bias": np.zeros(2, "f4")}),
    ],
)
def test_files_of_other_layouts_are_read(case: str, change: Any, references: Any, tmp_path: Path) -> None:
    reference = references(case)
    with use_backend("numpy"):
        outputs, _ = _call(models.load(_rewritten(reference.folder, tmp_path, change)), reference.inputs)
    if "resnet" in case and len(outputs) == 2:
        outputs[0] = outputs[0].reshape(reference.outputs[0].shape)
    assert _distance(outputs, reference.outputs) <= 1e-4


@pytest.mark.parametrize("case", ["bert-masked", "roberta-masked"])
def test_scores_of_tokens_that_are_no_longer_tied(case: str, references: Any, tmp_path: Path) -> None:
    reference = references(case)
    name = "lm_head.decoder" if "roberta" in case else "cls.predictions.decoder"

    def separate(state: dict[str, Any]) -> dict[str, Any]:
        words = next(x for k, x in state.items() if k.endswith("word_embeddings.weight"))
        bias = state[f"{name.removesuffix('.decoder')}.bias"]
        return {**state, f"{name}.weight": words + 1, f"{name}.bias": bias + 1}

    folder = _rewritten(reference.folder, tmp_path, separate)
    theirs = _class(CASES[case][0]).from_pretrained(folder).eval()
    expected, _ = _outputs(theirs, reference.inputs)
    with use_backend("numpy"):
        with pytest.warns(UserWarning, match=f"tie_word_embeddings is true in .* another tensor {name}"):
            model = models.load(folder)
        outputs, _ = _call(model, reference.inputs)
    assert _distance(outputs, expected) <= 1e-4


@pytest.mark.parametrize(
    ("case", "architecture", "new"),
    [
        ("bert-masked", "BertForSequenceClassification", {"classifier", "encoder.pooler"}),
        ("bert", "BertForSequenceClassification", {"classifier"}),
        ("bert", "BertForMaskedLM", {"head.dense", "head.norm", "head"}),
        ("roberta-masked", "RobertaForSequenceClassification", {"dense", "classifier"}),
        ("vit", "ViTForImageClassification", {"classifier"}),
        ("resnet-basic", "ResNetForImageClassification", {"classifier"}),
        ("bert-classifier", "BertModel", set()),
        ("roberta-masked", "RobertaModel", set()),
        ("vit-classifier", "ViTModel", set()),
        ("resnet-bottleneck", "ResNetModel", set()),
    ],
)
def test_a_model_is_loaded_as_another_class_of_its_family(
    backend: Any, case: str, architecture: str, new: set[str], references: Any, tmp_path: Path
) -> None:
    reference = references(case)
    options = {"num_labels": 7} if new and "Masked" not in architecture else {}
    model = models.load(reference.folder, architecture=architecture, config=options)
    assert model.backend == backend.name
    state = {path: _numpy(x) for path, x in model.state_dict().items()}
    # New layers are drawn, and all others are those of the file.
    drawn = {path for path in state if path.rpartition(".")[0] in new}
    assert drawn or not new
    assert all(np.ptp(state[path]) > 0 for path in drawn if path.endswith("weight") and "norm" not in path)
    assert all(np.isfinite(x).all() for x in state.values())
    models.save(model, tmp_path)
    theirs, info = _class(architecture).from_pretrained(
        reference.folder, output_loading_info=True, **({"num_labels": 7} if options else {})
    )
    ours, again = _class(architecture).from_pretrained(tmp_path, output_loading_info=True)
    pooler = {k for k in again["missing_keys"] if "pooler" in k}
    assert again["missing_keys"] == pooler
    missing = {k for k in info["missing_keys"] if "pooler" not in k and "decoder" not in k}
    assert len(missing) == len(drawn) - 2 * ("encoder.pooler" in new)
    pairs = zip(theirs.state_dict().items(), ours.state_dict().items(), strict=True)
    assert all(torch.equal(x, y) for (name, x), (_, y) in pairs if name not in info["missing_keys"])
    assert ours.config.num_labels == (7 if options else theirs.config.num_labels)
    _, states = _call(model, reference.inputs) if not pooler else (None, [])
    _, expected = _outputs(ours.eval(), reference.inputs)
    states = [x.reshape(y.shape) for x, y in zip(states, expected, strict=not pooler)]
    assert pooler or _distance(states, expected) <= 1e-4


def test_the_body_of_another_architecture_must_be_complete(references: Any, tmp_path: Path) -> None:
    folder = references("bert-masked").folder
    lacking = lambda state: {  # noqa: E731
        ("bert.encoder.layer.9.extra" if "token_type" in k else k): x for k, x in state.items() if "layer.1." not in k
    }
    folder = _rewritten(folder, tmp_path, lacking)
    with pytest.raises(
        ValueError, match=r"missing: .*token_type_.*layer\.1\.(?s:.*)extra: bert.encoder.layer.9.extra \(remove them"
    ):
        models.load(folder, architecture="BertForSequenceClassification")
    with pytest.raises(ValueError, match=r"one of BertModel, BertForMaskedLM, .* for bert, got 'BertClassifier'"):
        models.load(folder, architecture="BertClassifier")


def test_a_new_head_has_the_dtype_and_the_values_of_a_new_layer(backend: Any, references: Any) -> None:
    folder = references("vit").folder
    ops.random.set_seed(5)
    model = models.load(folder, "bfloat16", architecture="ViTForImageClassification")
    assert {ops.dtype(x).name for x in model.parameters().values()} == {"bfloat16"}
    ops.random.set_seed(5)
    expected = nn.Linear(24, 2, dtype="bfloat16")
    assert np.array_equal(_numpy(model.classifier.weight), _numpy(expected.weight))
    with pytest.raises(ValueError, match=r"missing: classifier\.weight, classifier\.bias"):
        models.load(_as(folder, "ViTForImageClassification"))


def _as(folder: Path, architecture: str) -> Path:
    """The folder, with another class in ``config.json``."""
    path = folder / "config.json"
    target = folder.with_name(f"{folder.name}-{architecture}")
    target.mkdir(exist_ok=True)
    (target / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes())
    (target / "config.json").write_text(json.dumps({**json.loads(path.read_text()), "architectures": [architecture]}))
    return target


@pytest.mark.parametrize(("number", "names"), [(2, 3), (5, 3), (3, 3), (4, None)])
def test_the_number_of_labels_is_that_of_transformers(
    number: int, names: int | None, references: Any, tmp_path: Path
) -> None:
    from ember_ml.models.bert import BertConfig

    entries = {"num_labels": number, "id2label": names and {str(i): "abc"[i] for i in range(names)}}
    theirs = transformers.BertConfig(**{key: x for key, x in entries.items() if x is not None})
    ours = BertConfig.from_dict({key: x for key, x in entries.items() if x is not None})
    assert ours.labels == theirs.num_labels == number
    (tmp_path / "config.json").write_text(json.dumps(ours.to_dict()))
    again = transformers.AutoConfig.from_pretrained(tmp_path)
    assert again.id2label == theirs.id2label


@pytest.mark.parametrize("case", ["bert", "vit"])
def test_a_model_without_a_pooler_returns_none_for_it(case: str, references: Any, tmp_path: Path) -> None:
    reference = references(case)
    folder = _rewritten(reference.folder, tmp_path, lambda state: {k: x for k, x in state.items() if "pooler" not in k})
    given = {name: ops.asarray(x) for name, x in reference.inputs.items()}
    x, pooled = models.load(folder)(given.get("pixel_values", given))
    assert pooled is None
    assert np.abs(_numpy(x) - reference.outputs[0]).max() <= 1e-4


@pytest.mark.parametrize(
    ("case", "entries", "message"),
    [
        ("bert-classifier", {"num_labels": 0}, "the number of labels must be >= 1, got 0"),
        ("bert", {"is_decoder": True}, "is_decoder and add_cross_attention must be false"),
        ("bert", {"position_embedding_type": "relative_key"}, "position_embedding_type must be 'absolute'"),
        ("bert", {"hidden_act": "mystery"}, "activation must be one of .* got 'mystery'"),
        ("bert", {"num_attention_heads": 7}, "num_heads must divide d_model"),
        ("bert-classifier", {"id2label": {}}, "the number of labels must be >= 1, got 0"),
        ("roberta", {"pad_token_id": None}, "pad_token_id must be an integer, got null"),
        ("vit", {"patch_size": [4]}, r"patch_size must be a positive integer or two of them, got \[4\]"),
        ("resnet-basic", {"layer_type": "other"}, "layer_type must be 'basic' or 'bottleneck', got 'other'"),
        ("resnet-basic", {"depths": [1]}, "hidden_sizes and depths must have one entry per stage, got 2 and 1"),
        ("resnet-basic", {"depths": [1, 0]}, r"depths must be a list of positive integers, got \[1, 0\]"),
    ],
)
def test_wrong_entries_of_a_configuration_are_named(
    case: str, entries: dict[str, Any], message: str, references: Any, tmp_path: Path
) -> None:
    folder = _rewritten(references(case).folder, tmp_path, lambda state: state, **entries)
    with pytest.raises(ValueError, match=f"config.json: .*{message}"):
        models.load(folder)


def test_batch_norm_is_trained_and_saved(backend: Any, references: Any, tmp_path: Path) -> None:
    reference = references("resnet-bottleneck")
    model, theirs = models.load(reference.folder), _class("ResNetForImageClassification")
    trainer = training.Trainer(model, lambda y, t: ops.mean(ops.square(ops.subtract(y, t))), optim.SGD(0.0))
    images = reference.inputs["pixel_values"]
    trainer.fit(images, np.zeros((2, 4), "f4"), batch_size=2, verbose=0, shuffle=False)
    assert not model.training
    models.save(model, tmp_path)
    expected = theirs.from_pretrained(reference.folder).train()
    with torch.no_grad():
        expected(torch.tensor(images).permute(0, 3, 1, 2))
    found = theirs.from_pretrained(tmp_path)
    pairs = zip(found.named_buffers(), expected.named_buffers(), strict=True)
    for (name, x), (_, y) in pairs:
        assert torch.allclose(x, y, atol=1e-5), name
    assert int(found.resnet.embedder.embedder.normalization.num_batches_tracked) == 8


def test_a_classifier_learns(backend: Any, references: Any) -> None:
    reference = references("vit-oblong")
    model = models.load(reference.folder)
    lora = nn.LoRA(model, "*.value", rank=2, trained="classifier")
    trainer = training.Trainer(lora, _cross_entropy, optim.Adam(0.02), compile=backend.name == "jax")
    x = reference.inputs["pixel_values"]
    losses = [epoch["loss"] for epoch in trainer.fit(x, [0, 2], epochs=8, batch_size=2, verbose=0).epochs]
    assert losses[-1] < losses[0] / 2


def _cross_entropy(scores: Any, target: Any) -> Any:
    return ops.sparse_categorical_crossentropy(target, scores, from_logits=True)


def test_patches_are_those_of_a_convolution() -> None:
    layer = nn.PatchEmbedding(2, 3, (2, 4))
    images = np.random.default_rng(0).normal(size=(1, 5, 8, 2)).astype("f4")
    found = layer(images)
    weight, bias = np.asarray(layer.projection.weight), np.asarray(layer.projection.bias)
    patch = images[0, 2:4, 4:8]
    assert tuple(found.shape) == (1, 4, 3)
    assert np.allclose(_numpy(found)[0, 3], np.einsum("hwc,hwcd->d", patch, weight) + bias, atol=1e-5)
    first = nn.PatchEmbedding(2, 3, (2, 4), data_format="channels_first")
    first.load_state_dict(layer.state_dict())
    assert np.allclose(_numpy(first(images.transpose(0, 3, 1, 2))), _numpy(found), atol=1e-5)
