"""LoRA: adapters alone are trained, merged adapters change nothing, and files are those of PEFT."""

from __future__ import annotations

import copy
import json
import pickle
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ember_ml import models, nn, ops, optim, training
from ember_ml.errors import UnsupportedError
from ember_ml.models.llama import Llama, LlamaConfig
from ember_ml.nn.modules.lora import AdaptedLinear

X = np.random.default_rng(1).normal(size=(6, 4)).astype("f4")
Y = np.random.default_rng(2).integers(0, 3, 6)


def network() -> Any:
    ops.random.set_seed(5)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm(8), nn.Tanh(), nn.Linear(8, 3))


def _numpy(x: Any) -> Any:
    return ops.to_numpy(ops.cast(x, "float32"))


def _values(tensors: dict[str, Any]) -> dict[str, Any]:
    return {path: np.array(ops.to_numpy(x)) for path, x in tensors.items()}


def _are_same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[path], other[path]) for path in one)


def randomized(lora: Any, seed: int = 3) -> Any:
    """The adapters with random values, so that they change the result."""
    generator = np.random.default_rng(seed)
    state = {path: generator.normal(0, 0.3, tuple(x.shape)).astype("f4") for path, x in lora.adapter_state().items()}
    lora.load_state_dict(state, strict=False)
    return lora


def test_a_new_adapter_changes_no_result(backend: Any) -> None:
    model = network().eval()
    before = _numpy(model(ops.asarray(X)))
    lora = nn.LoRA(model, ("0", "3"), rank=2)
    assert list(lora.parameters()) == [f"model.{i}.lora_{half}" for i in (0, 3) for half in "ab"]
    assert np.array_equal(_numpy(lora.eval()(ops.asarray(X))), before)
    assert np.array_equal(_numpy(model(ops.asarray(X))), before)
    assert lora.layers.keys() == {"0", "3"}


@pytest.mark.usefixtures("traced_only")
@pytest.mark.parametrize("is_compiled", [False, True])
def test_the_trainer_changes_the_adapters_alone(backend: Any, is_compiled: bool, tmp_path: Path) -> None:
    lora = nn.LoRA(network(), "*", rank=2, dropout=0.25)
    before, tensors = _values(lora.parameters()), _values(lora.tensors())
    trainer = training.Trainer(lora, _logits_loss, optim.AdamW(0.05), compile=is_compiled)
    history = trainer.fit(X, Y, epochs=6, batch_size=6, verbose=0, shuffle=False)
    after = _values(lora.tensors())
    changed = {path for path in after if not np.array_equal(after[path], tensors[path])}
    assert changed == before.keys()
    losses = [epoch["loss"] for epoch in history.epochs]
    assert losses[-1] < losses[0]
    # The state of the optimizer, and the checkpoint, are those of the adapters.
    held = {path.rpartition(".")[0] for path in trainer.optimizer.tensors() if "." in path}
    assert {path for path in held if path.startswith("model.")} <= before.keys()
    saved = ops.load(trainer.save(tmp_path / "run.safetensors"))
    assert saved["model"].keys() == {*before, "model.1.running_mean", "model.1.running_var"}
    again = training.Trainer(nn.LoRA(network(), "*", rank=2, dropout=0.25), _logits_loss, optim.AdamW(0.05))
    assert again.restore(tmp_path / "run.safetensors")
    assert _are_same(_values(again.model.tensors()), after)


def _logits_loss(scores: Any, target: Any) -> Any:
    return ops.sparse_categorical_crossentropy(target, scores, from_logits=True)


def test_merged_and_unmerged_results_agree(backend: Any) -> None:
    model = nn.Sequential(nn.Embedding(11, 6), nn.Linear(6, 5))
    tokens = ops.asarray([[1, 2, 10], [0, 3, 3]])
    plain = _numpy(model(tokens))
    lora = randomized(nn.LoRA(model, "*", rank=3, alpha=5))
    weights = _values(model.parameters(trainable=False))
    adapted = _numpy(lora(tokens))
    scores = _numpy(model[0].attend(ops.ones((2, 6))))
    assert np.abs(adapted - plain).max() > 0.1
    assert lora.merge() is lora
    assert lora.is_merged
    assert not lora.parameters()
    assert np.abs(_numpy(lora(tokens)) - adapted).max() <= 1e-5
    assert np.abs(_numpy(model[0].attend(ops.ones((2, 6)))) - scores).max() <= 1e-5
    lora.merge()
    lora.unmerge()
    assert np.abs(_numpy(lora(tokens)) - adapted).max() <= 1e-5
    restored = _values(model.parameters(trainable=False))
    assert max(np.abs(restored[path] - weights[path]).max() for path in weights) <= 1e-6
    assert len(lora.parameters()) == 4
    assert lora.merge().remove() is model
    assert type(model[1]) is nn.Linear
    assert np.abs(_numpy(model(tokens)) - adapted).max() <= 1e-5
    assert list(model.parameters()) == ["0.weight", "1.weight", "1.bias"]


def test_merging_in_training_is_an_error_and_not_a_silent_stop(backend: Any) -> None:
    lora = nn.LoRA(network(), "*", rank=1).merge()
    with pytest.raises(ValueError, match=r"LoRA: adapters must not be merged in training; write unmerge\(\)"):
        training.Trainer(lora, _logits_loss, optim.SGD(0.1)).fit(X, Y, verbose=0)


def test_modules_that_are_trained_as_a_whole_are_in_the_state(backend: Any) -> None:
    lora = nn.LoRA(network(), "0", rank=1, trained=("1", "3"))
    assert set(lora.parameters()) == {"model.0.lora_a", "model.0.lora_b", "model.1.weight", "model.1.bias",
                                      "model.3.weight", "model.3.bias"}  # fmt: skip
    assert lora.adapter_state().keys() == {*lora.parameters(), "model.1.running_mean", "model.1.running_var"}
    assert lora.train().layout().modules["model.1"].training
    frozen = nn.LoRA(network(), "0", rank=1).train()
    assert not frozen.layout().modules["model.1"].training


def test_what_was_frozen_before_is_frozen_after() -> None:
    lora = nn.LoRA(network().freeze("3", "0.bias"), "0", rank=1, trained="3")
    assert "model.3.weight" in lora.parameters()
    assert list(lora.remove().parameters()) == ["0.weight", "1.weight", "1.bias"]


def test_the_adapter_may_be_more_precise_than_the_layer(backend: Any) -> None:
    model = network().astype("bfloat16").eval()
    lora = nn.LoRA(model, "0", rank=2, dtype="float32")
    assert {ops.dtype(x).name for x in lora.parameters().values()} == {"float32"}
    assert ops.dtype(lora(ops.asarray(X, dtype="bfloat16"))).name == "bfloat16"


def test_methods_of_the_model_are_methods_of_the_adapted_one() -> None:
    config = LlamaConfig(
        vocab_size=20,
        hidden_size=8,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=32,
    )
    lora = randomized(nn.LoRA(Llama(config).eval(), "*.query", rank=1))
    text = lora.model.generate([1, 2], 4, temperature=0)
    for one in (lora, pickle.loads(pickle.dumps(lora)), copy.copy(lora), copy.deepcopy(lora)):
        assert one.generate([1, 2], 4, temperature=0) == text
        assert one.generate.__self__ is one.model
    # Attributes of the model that are no methods are its own, and those of LoRA come first.
    for name in ("config", "_nothing", "nothing", "__nothing__"):
        with pytest.raises(AttributeError, match=f"'LoRA' object has no attribute '{name}'"):
            getattr(lora, name)
    assert lora.parameters.__self__ is lora


def test_an_adapted_model_is_pickled_and_moved() -> None:
    lora = randomized(nn.LoRA(network().eval(), "0", rank=2))
    again = pickle.loads(pickle.dumps(lora))
    expected = _numpy(lora(ops.asarray(X)))
    assert isinstance(again.model[0], AdaptedLinear)
    assert np.array_equal(_numpy(again(ops.asarray(X))), expected)
    assert np.abs(_numpy(again.to_backend("numpy")(X)) - expected).max() <= 1e-5
    assert "rank=2, alpha=16" in repr(again)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: nn.LoRA(m, "*.query"), "a pattern of targets must match a layer, one of 0, 3, got '\\*.query'"),
        (lambda m: nn.LoRA(m, ("0", "1")), "got '1'"),
        (lambda m: nn.LoRA(m, ()), "targets must have at least one pattern"),
        (lambda m: nn.LoRA(m, "0", rank=0), "rank must be >= 1, got 0"),
        (lambda m: nn.LoRA(m, "0", dropout=1.5), "dropout must be from 0 to 1, got 1.5"),
        (lambda m: nn.LoRA(m, "0", trained="9"), "a pattern of trained must match"),
        (lambda m: nn.LoRA(m, "0", trained="0"), "adapted or trained as a whole, got both for 0"),
        (lambda m: nn.LoRA(nn.LoRA(m, "0").model, "3"), "no adapters yet, got some at 0"),
        (lambda m: nn.LoRA(m[0], "*"), "must contain the layers to adapt"),
        (lambda m: nn.LoRA.from_factors(m, {"9": (X, X, 1.0)}), "some of 0, 3, got 9"),
        (lambda m: nn.LoRA.from_factors(m, {"0": (X, X, 1.0)}), r"\(4, rank\) and \(rank, 8\) for '0', got \[6, 4\]"),
    ],
)
def test_mistakes_are_named_and_leave_the_model_as_it_is(call: Any, message: str) -> None:
    model = network()
    with pytest.raises(ValueError, match=f"LoRA: .*{message}"):
        call(model)
    if "yet" not in message:
        assert list(model.parameters()) == ["0.weight", "0.bias", "1.weight", "1.bias", "3.weight", "3.bias"]


def test_wrong_types_are_type_errors() -> None:
    with pytest.raises(TypeError, match="LoRA: rank must be an integer, got"):
        nn.LoRA(network(), "0", rank=2.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="LoRA: alpha must be a number, got"):
        nn.LoRA(network(), "0", alpha="16")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="LoRA: model must be a Module, got"):
        nn.LoRA(ops.square, "0")  # type: ignore[arg-type]


def test_a_tied_weight_is_not_adapted() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    model[1].weight = nn.Tied(model[0], "weight")
    with pytest.raises(ValueError, match=r"must not be tied, got another name for it: 1\.weight"):
        nn.LoRA(model, "0")
    with pytest.raises(ValueError, match="must not be tied"):
        nn.LoRA(model, "1")


# Files. PEFT 0.21 reads a property that transformers 5.23 has renamed, and warns of output layers.
pytestmark = [
    pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning"),
    pytest.mark.filterwarnings("ignore:Setting `save_embedding_layers` to `True`:UserWarning"),
    pytest.mark.filterwarnings("ignore:Model has `tie_word_embeddings=True`:UserWarning"),
    # PEFT 0.21 finds the layout of each layer whatever the entry says, and ties embed_tokens and lm_head only.
    pytest.mark.filterwarnings("ignore:fan_in_fan_out is set to:UserWarning"),
    pytest.mark.filterwarnings("ignore:You have requested `ensure_weight_tying`, but no tied modules are:UserWarning"),
]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Folder of a model of transformers with random weights, by its architecture."""
    transformers = pytest.importorskip("transformers", reason="transformers makes the models")
    torch = pytest.importorskip("torch", reason="transformers computes with torch")
    text = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
    configs = {
        "bert": ("BertForSequenceClassification", {**text, "vocab_size": 19, "num_labels": 3}),
        "gpt2": ("GPT2LMHeadModel", {"vocab_size": 19, "n_positions": 16, "n_embd": 12, "n_layer": 2, "n_head": 2}),
        "llama": (
            "LlamaForCausalLM",
            {**text, "vocab_size": 19, "num_key_value_heads": 1, "tie_word_embeddings": False},
        ),
        "tied": (
            "LlamaForCausalLM",
            {**text, "vocab_size": 19, "num_key_value_heads": 1, "tie_word_embeddings": True},
        ),
        "tied-bert": ("BertForMaskedLM", {**text, "vocab_size": 19}),
        "vit": ("ViTForImageClassification", {**text, "image_size": 8, "patch_size": 4}),
    }

    @cache
    def make(name: str) -> tuple[Path, Any]:
        kind, options = configs[name]
        torch.manual_seed(1)
        cls = getattr(transformers, kind)
        model = cls(cls.config_class(**options)).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.2 * torch.randn_like(parameter))
        folder = tmp_path_factory.mktemp(name)
        model.save_pretrained(folder)
        return folder, lambda: cls.from_pretrained(folder).eval()

    return make


TARGETS = {
    "bert": (
        ("*.query", "*.value", "*.linear1", "*.tokens"),
        ["query", "value", "intermediate.dense", "word_embeddings"],
    ),
    "gpt2": (("*.attention.query", "*.attention.value", "*.linear2"), ["c_attn", "mlp.c_proj"]),
    "llama": (("*.query", "*.value", "*.down", "head"), ["q_proj", "v_proj", "down_proj", "lm_head"]),
    "vit": (("*.query", "*.out"), ["q_proj", "o_proj"]),
}
TOKENS = np.array([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]])
IMAGES = np.random.default_rng(4).normal(size=(2, 8, 8, 3)).astype("f4")


def _theirs(model: Any) -> Any:
    import torch

    is_text = "vocab_size" in model.config.to_dict() and hasattr(model.config, "vocab_size")
    with torch.no_grad():
        if is_text:
            return model(input_ids=torch.tensor(TOKENS)).logits.numpy()
        return model(pixel_values=torch.tensor(IMAGES).permute(0, 3, 1, 2)).logits.numpy()


def _ours(model: Any, name: str) -> Any:
    return _numpy(model(ops.asarray(IMAGES if name == "vit" else TOKENS)))


@pytest.mark.parametrize("name", TARGETS)
def test_peft_reads_our_adapters(backend: Any, name: str, published: Any, tmp_path: Path) -> None:
    peft = pytest.importorskip("peft", reason="PEFT reads the files")
    folder, load = published(name)
    model = models.load(folder)
    trained = ("classifier",) if name == "bert" else ()
    lora = randomized(nn.LoRA(model, TARGETS[name][0], rank=3, alpha=5, trained=trained))
    models.save_adapter(lora, tmp_path)
    expected = _ours(lora, name)
    theirs = peft.PeftModel.from_pretrained(load(), tmp_path)
    assert np.abs(_theirs(theirs) - expected).max() <= 1e-4
    # The same adapters again, on a new model.
    again = models.load_adapter(models.load(folder), tmp_path)
    assert np.abs(_ours(again, name) - expected).max() <= 1e-5
    assert again.adapter_state().keys() == lora.adapter_state().keys()
    assert again.trained == lora.trained
    assert np.abs(_ours(again.merge(), name) - expected).max() <= 1e-5


@pytest.mark.parametrize(
    ("name", "is_stabilized"), [("bert", False), ("gpt2", False), ("gpt2", True), ("llama", False), ("vit", False)]
)
def test_we_read_the_adapters_of_peft(
    backend: Any, name: str, is_stabilized: bool, published: Any, tmp_path: Path
) -> None:
    peft = pytest.importorskip("peft", reason="PEFT writes the files")
    folder, load = published(name)
    config = peft.LoraConfig(
        r=3,
        lora_alpha=4,
        target_modules=TARGETS[name][1],
        init_lora_weights=False,
        use_rslora=is_stabilized,
        fan_in_fan_out=name == "gpt2",
        modules_to_save=["classifier"] if name == "bert" else None,
        rank_pattern={TARGETS[name][1][0]: 2},
        alpha_pattern={TARGETS[name][1][-1]: 7},
    )
    theirs = peft.get_peft_model(load(), config).eval()
    theirs.save_pretrained(tmp_path)
    lora = models.load_adapter(models.load(folder), tmp_path)
    expected = _theirs(theirs)
    assert np.abs(_ours(lora, name) - expected).max() <= 1e-4
    assert lora.rank_stabilized == is_stabilized
    # Writing it again keeps the ranks.
    models.save_adapter(lora, tmp_path / "again")
    again = models.load_adapter(models.load(folder), tmp_path / "again")
    assert {p: tuple(x.shape) for p, x in again.parameters().items()} == {
        p: tuple(x.shape) for p, x in lora.parameters().items()
    }
    assert np.abs(_ours(again, name) - expected).max() <= 1e-4


def _trained_by_peft(load: Any, folder: Path, **options: Any) -> Any:
    peft = pytest.importorskip("peft", reason="PEFT writes the files")
    import torch

    # PEFT changes the lists that it is given.
    config = peft.LoraConfig(r=2, init_lora_weights=False, **copy.deepcopy(options))
    theirs = peft.get_peft_model(load(), config).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            if parameter.requires_grad:
                parameter.add_(0.2 * torch.randn_like(parameter))
    theirs.save_pretrained(folder)
    return theirs


@pytest.mark.parametrize(
    "options",
    [
        {"target_modules": ["q_proj"], "modules_to_save": ["embed_tokens"]},
        {"target_modules": ["q_proj"], "modules_to_save": ["lm_head"]},
        {"target_modules": ["q_proj"], "modules_to_save": ["embed_tokens", "lm_head"]},
        {"target_modules": ["q_proj", "lm_head"]},
        {"target_modules": ["q_proj", "embed_tokens"]},
        {"target_modules": ["q_proj", "embed_tokens", "lm_head"]},
        {"target_modules": ["c_attn", "wte"]},
        {"target_modules": ["c_attn", "wte", "lm_head"]},
        # PEFT does not know wte as an embedding, and ties nothing.
        {"target_modules": ["c_attn", "wte"], "ensure_weight_tying": True},
        {"target_modules": ["c_attn"], "modules_to_save": ["wte"], "ensure_weight_tying": True},
    ],
)
def test_an_output_layer_that_peft_has_separated_from_the_embedding_has_its_own_weights(
    backend: Any, options: dict[str, Any], published: Any, tmp_path: Path
) -> None:
    folder, load = published("gpt2" if "c_attn" in options["target_modules"] else "tied")
    theirs = _trained_by_peft(load, tmp_path / "adapter", **options)
    expected = _theirs(theirs)
    model = models.load(folder)
    lora = models.load_adapter(model, tmp_path / "adapter")
    assert np.abs(_ours(lora, "tied") - expected).max() <= 1e-4
    assert not model.config.tie_word_embeddings
    models.save_adapter(lora, tmp_path / "again")
    again = models.load_adapter(models.load(folder), tmp_path / "again")
    assert np.abs(_ours(again, "tied") - expected).max() <= 1e-4
    models.save(lora.merge().remove(), tmp_path / "merged")
    assert np.abs(_ours(models.load(tmp_path / "merged"), "tied") - expected).max() <= 1e-4


@pytest.mark.parametrize(
    "options",
    [
        {"target_modules": ["q_proj", "embed_tokens"]},
        {"target_modules": ["q_proj", "lm_head"], "alpha_pattern": {"embed_tokens": 3, "lm_head": 3}},
        {"target_modules": ["q_proj"], "modules_to_save": ["embed_tokens"]},
        {"target_modules": ["q_proj"], "modules_to_save": ["lm_head"]},
        {"target_modules": ["c_attn", "lm_head"]},
        {"target_modules": ["c_attn"], "modules_to_save": ["lm_head"]},
    ],
)
def test_what_peft_has_tied_stays_so(backend: Any, options: dict[str, Any], published: Any, tmp_path: Path) -> None:
    peft = pytest.importorskip("peft", reason="PEFT reads the files")
    folder, load = published("gpt2" if "c_attn" in options["target_modules"] else "tied")
    expected = _theirs(_trained_by_peft(load, tmp_path, ensure_weight_tying=True, **options))
    lora = models.load_adapter(models.load(folder), tmp_path)
    assert np.abs(_ours(lora, "tied") - expected).max() <= 1e-4
    assert lora.model.head is None
    assert lora.model.config.tie_word_embeddings
    models.save_adapter(lora, tmp_path / "again")
    assert np.abs(_theirs(peft.PeftModel.from_pretrained(load(), tmp_path / "again")) - expected).max() <= 1e-4


def test_tied_factors_of_two_scales_are_separated(published: Any, tmp_path: Path) -> None:
    folder, load = published("tied")
    options = {"target_modules": ["q_proj", "embed_tokens"], "alpha_pattern": {"lm_head": 3}}
    theirs = _trained_by_peft(load, tmp_path, ensure_weight_tying=True, **options)
    lora = models.load_adapter(models.load(folder), tmp_path)
    assert np.abs(_ours(lora, "tied") - _theirs(theirs)).max() <= 1e-4
    assert not lora.model.config.tie_word_embeddings


TIED = {
    "tied": ("embedding", "*.query"),
    "gpt2": ("embedding", "*.linear2"),
    "tied-bert": ("encoder.tokens", "*.query"),
}


@pytest.mark.parametrize("name", TIED)
def test_peft_applies_an_adapter_of_a_tied_embedding_to_the_output_layer(
    backend: Any, name: str, published: Any, tmp_path: Path
) -> None:
    peft = pytest.importorskip("peft", reason="PEFT reads the files")
    folder, load = published(name)
    lora = randomized(nn.LoRA(models.load(folder), TIED[name], rank=2, alpha=5))
    expected = _ours(lora, name)
    models.save_adapter(lora, tmp_path)
    config = json.loads((tmp_path / "adapter_config.json").read_text())
    assert config.get("ensure_weight_tying", False) == (name != "tied-bert")
    theirs = peft.PeftModel.from_pretrained(load(), tmp_path)
    assert np.abs(_theirs(theirs) - expected).max() <= 1e-4
    again = models.load_adapter(models.load(folder), tmp_path)
    assert again.layers.keys() == lora.layers.keys()
    assert np.abs(_ours(again, name) - expected).max() <= 1e-5


@pytest.mark.parametrize("name", TIED)
def test_adapters_of_earlier_versions_apply_to_the_embedding_and_the_output_layer(
    name: str, published: Any, tmp_path: Path
) -> None:
    folder, _ = published(name)
    lora = randomized(nn.LoRA(models.load(folder), TIED[name], rank=2))
    models.save_adapter(lora, tmp_path)
    # These versions wrote the adapter of the embedding alone, and neither entry.
    path = tmp_path / "adapter_config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps({key: config[key] for key in config.keys() - {"auto_mapping", "ensure_weight_tying"}}))
    output = "cls.predictions.decoder" if name == "tied-bert" else "lm_head"
    _with_tensors(**{f"{output}.lora_{half}.weight": None for half in "AB"})(tmp_path)
    again = models.load_adapter(models.load(folder), tmp_path)
    assert again.layers.keys() == lora.layers.keys()
    assert np.abs(_ours(again, name) - _ours(lora, name)).max() <= 1e-5


def test_an_embedding_that_is_trained_with_the_output_layer_stays_so(published: Any, tmp_path: Path) -> None:
    peft = pytest.importorskip("peft", reason="PEFT reads the files")
    folder, load = published("tied")
    lora = randomized(nn.LoRA(models.load(folder), "*.query", rank=2, trained="embedding"))
    expected = _ours(lora, "tied")
    models.save_adapter(lora, tmp_path)
    assert np.abs(_theirs(peft.PeftModel.from_pretrained(load(), tmp_path)) - expected).max() <= 1e-4
    again = models.load_adapter(models.load(folder), tmp_path)
    assert again.model.head is None
    assert np.abs(_ours(again, "tied") - expected).max() <= 1e-5


def test_a_file_that_separates_what_cannot_be_separated_is_an_error(published: Any, tmp_path: Path) -> None:
    folder, load = published("tied-bert")
    _trained_by_peft(load, tmp_path, target_modules=["query", "word_embeddings"])
    with pytest.raises(UnsupportedError, match=r"BertMaskedLM must be changed together, .*word_embeddings\.lora_"):
        models.load_adapter(models.load(folder), tmp_path)
    _trained_by_peft(load, tmp_path, target_modules=["query"], modules_to_save=["word_embeddings"])
    with pytest.raises(UnsupportedError, match=r"output layer of BertMaskedLM must be changed together, .*embeddings"):
        models.load_adapter(models.load(folder), tmp_path)
    lora = nn.LoRA(models.load(folder), "*.query", trained="encoder.tokens")
    with pytest.raises(UnsupportedError, match=r"save_adapter: .*word_embeddings\.weight must be frozen or adapted"):
        models.save_adapter(lora, tmp_path)


def test_a_head_that_shares_the_embedding_is_trained_as_a_whole(backend: Any, published: Any, tmp_path: Path) -> None:
    peft = pytest.importorskip("peft", reason="PEFT reads the files")
    folder, load = published("tied-bert")
    model = models.load(folder)
    lora = randomized(nn.LoRA(model, "*.query", rank=2, trained="head"))
    state = {path: x + 0.5 for path, x in lora.adapter_state().items() if path.startswith("model.head.")}
    lora.load_state_dict(state, strict=False)
    expected = _ours(lora, "tied-bert")
    models.save_adapter(lora, tmp_path)
    assert np.abs(_theirs(peft.PeftModel.from_pretrained(load(), tmp_path)) - expected).max() <= 1e-4
    again = models.load_adapter(models.load(folder), tmp_path)
    assert np.abs(_ours(again, "tied-bert") - expected).max() <= 1e-5
    # The embedding has the dtype of the model, and is the same in it.
    narrow = models.load_adapter(models.load(folder, dtype="bfloat16"), tmp_path)
    assert np.abs(_ours(narrow, "tied-bert") - expected).max() <= 0.05 * np.abs(expected).max()


def test_a_decoder_stays_tied_after_an_error(published: Any, tmp_path: Path) -> None:
    folder, load = published("tied")
    _trained_by_peft(load, tmp_path, target_modules=["q_proj"], modules_to_save=["embed_tokens"])
    _with_tensors(other=X)(tmp_path)
    model = models.load(folder)
    before = _ours(model, "tied")
    with pytest.raises(ValueError, match=r"extra: base_model\.model\.other"):
        models.load_adapter(model, tmp_path)
    assert model.head is None
    assert model.config.tie_word_embeddings
    assert np.array_equal(_ours(model, "tied"), before)


@pytest.mark.parametrize("name", TARGETS)
def test_all_layers_of_a_model_are_adapted_where_they_are_used(backend: Any, name: str, published: Any) -> None:
    model = models.load(published(name)[0])
    plain = _ours(model, name)
    adapted = {path for path, module in model.named_modules() if isinstance(module, (nn.Linear, nn.Embedding))}
    for path in sorted(adapted):
        lora = randomized(nn.LoRA(model, path, rank=1))
        expected = _ours(lora, name)
        assert np.abs(expected - plain).max() > 1e-4, path
        assert np.abs(_ours(lora.merge(), name) - expected).max() <= 1e-5, path
        assert np.abs(_ours(lora.unmerge().remove(), name) - plain).max() <= 1e-5, path


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    """Folder with an adapter of a small network."""
    models.save_adapter(randomized(nn.LoRA(network(), "*", rank=2, trained="1")), tmp_path)
    return tmp_path


def test_a_model_without_a_table_of_names_has_those_of_torch(backend: Any, adapter: Path) -> None:
    tensors = ops.load(adapter / "adapter_model.safetensors")
    assert tuple(tensors["base_model.model.0.lora_A.weight"].shape) == (2, 4)
    assert tuple(tensors["base_model.model.0.lora_B.weight"].shape) == (8, 2)
    lora = models.load_adapter(network(), adapter)
    assert lora.trained == ["1"]
    expected = randomized(nn.LoRA(network(), "*", rank=2, trained="1"))
    assert _are_same(_values(lora.adapter_state()), _values(expected.adapter_state()))


def _with_entry(**entries: Any) -> Any:
    def change(folder: Path) -> None:
        path = folder / "adapter_config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **entries}))

    return change


def _with_tensors(**tensors: Any) -> Any:
    def change(folder: Path) -> None:
        path = folder / "adapter_model.safetensors"
        found = {**ops.load(path), **{f"base_model.model.{name}": x for name, x in tensors.items()}}
        ops.save(path, {name: x for name, x in found.items() if x is not None})

    return change


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (_with_entry(peft_type="IA3"), UnsupportedError, "adapter_config.json: peft_type must be 'LORA', got 'IA3'"),
        (_with_entry(use_dora=True), UnsupportedError, "adapter_config.json: use_dora must be off, got True"),
        (_with_entry(bias="all"), UnsupportedError, "bias must be 'none', got 'all'"),
        (_with_entry(init_lora_weights="pissa"), UnsupportedError, "init_lora_weights must leave .* got 'pissa'"),
        (_with_entry(r=0), ValueError, "adapter_config.json: r must be >= 1, got 0"),
        (_with_entry(lora_alpha="x", rank_pattern=3), ValueError, "lora_alpha must be a number, got 'x'; rank_pattern"),
        (lambda f: (f / "adapter_config.json").write_text("{"), ValueError, "adapter_config.json must be JSON"),
        (lambda f: (f / "adapter_config.json").unlink(), FileNotFoundError, "must have adapter_config.json"),
        (
            lambda f: (f / "adapter_model.safetensors").rename(f / "adapter_model.bin"),
            FileNotFoundError,
            "must have adapter_model.safetensors, got none; adapter_model.bin is a pickle",
        ),
        (
            lambda f: (f / "adapter_model.safetensors").write_bytes(b"1234567890"),
            ValueError,
            "adapter_model.safetensors",
        ),
        (
            _with_tensors(**{"9.lora_A.weight": X, "0.lora_A.weight": X, "3.lora_B.weight": None, "1.bias": X}),
            ValueError,
            r"(?s)adapters of layers of Sequential\nmissing: the factor B of 3\n"
            r"extra: base_model.model.9.lora_A.weight\n"
            r"wrong shape:\n  .*1.bias: \[6, 4\] where the model has \[8\]\n  .*0.lora_A.weight: \[6, 4\] where",
        ),
    ],
)
def test_every_mismatch_of_a_file_is_named_and_the_model_unchanged(
    change: Any, error: type[Exception], message: str, adapter: Path
) -> None:
    change(adapter)
    model = network()
    before = _values(model.tensors())
    with pytest.raises(error, match=message):
        models.load_adapter(model, adapter)
    assert _are_same(_values(model.tensors()), before)
    assert len(model.parameters()) == 6


def test_an_adapter_of_another_model_lists_all_tensors(adapter: Path) -> None:
    other = nn.Sequential(nn.Linear(3, 2))
    with pytest.raises(ValueError, match=r"(?s)extra: .*1.running_var.*3.lora_B.weight.*wrong shape.*0.lora_A.weight"):
        models.load_adapter(other, adapter)


def test_what_is_no_lora_is_a_type_error(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"save_adapter: lora must be an nn\.LoRA, got"):
        models.save_adapter(network(), tmp_path)
    with pytest.raises(TypeError, match="load_adapter: model must be a Module, got"):
        models.load_adapter(ops.square, tmp_path)  # type: ignore[arg-type]


def test_an_adapted_model_is_saved_after_its_adapters_are_removed(published: Any, tmp_path: Path) -> None:
    folder, _ = published("vit")
    lora = randomized(nn.LoRA(models.load(folder), "*.query", rank=2))
    expected = _ours(lora, "vit")
    with pytest.raises(ValueError, match=r"save: model must have no adapters, got .*; write merge\(\).remove\(\)"):
        models.save(lora.model, tmp_path)
    models.save(lora.merge().remove(), tmp_path)
    assert np.abs(_ours(models.load(tmp_path), "vit") - expected).max() <= 1e-5
