"""Pretrained decoders: what ``transformers`` computes, on every engine, from the files that it wrote, and back."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import struct
from collections.abc import Callable
from mmap import mmap
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pytest
from decoders import ATTENTION, CASES, difference, reference, torch, transformers

import ember_ml
from ember_ml import models, ops
from ember_ml.backend import Backend
from ember_ml.errors import UnsupportedError
from ember_ml.models import checkpoints

FIRSTS = list({name.partition("-")[0]: name for name in reversed(CASES)}.values())


def to_numpy(x: Any) -> Any:
    return ops.to_numpy(ops.cast(x, "float32"))


@pytest.mark.parametrize("name", CASES)
def test_scores_and_states_are_those_of_transformers(backend: Backend, name: str) -> None:
    expected = reference(name)
    model = models.load(expected.folder)
    assert model.backend == backend.name
    assert not model.training
    scores, states = model(expected.tokens, hidden_states=True)
    assert difference(to_numpy(scores), expected.scores) < 1e-4
    assert len(states) == len(expected.states)
    assert all(difference(to_numpy(a), b) < 1e-4 for a, b in zip(states, expected.states, strict=True))


@pytest.mark.parametrize("name", CASES)
def test_greedy_texts_are_those_of_transformers(backend: Backend, name: str) -> None:
    expected = reference(name)
    model = models.load(expected.folder)
    assert model.generate(expected.tokens[0], 64, temperature=0) == expected.greedy


@pytest.mark.parametrize("name", CASES)
def test_saved_weights_load_in_transformers(backend: Backend, name: str, tmp_path: Path) -> None:
    expected = reference(name)
    models.save(models.load(expected.folder), tmp_path, max_shard_size=9000)
    assert len(list(tmp_path.glob("model-*.safetensors"))) > 1
    loaded, info = type(expected.model).from_pretrained(
        tmp_path, output_loading_info=True, attn_implementation=ATTENTION
    )
    assert not any(info.values())
    with torch.no_grad():
        scores = loaded.eval()(torch.tensor(expected.tokens)).logits.numpy()
    assert difference(scores, expected.scores) == 0
    assert not list(tmp_path.glob(".ember*"))


@pytest.mark.parametrize("name", FIRSTS)
def test_bfloat16_is_within_its_rounding(backend: Backend, name: str) -> None:
    expected = reference(name)
    model = models.load(expected.folder, dtype="bfloat16")
    assert {ops.to_dtype_str(x.dtype) for x in model.parameters().values()} == {"bfloat16"}
    options = {"dtype": torch.bfloat16, "attn_implementation": ATTENTION}
    theirs = type(expected.model).from_pretrained(expected.folder, **options).eval()
    with torch.no_grad():
        rounded = theirs(torch.tensor(expected.tokens)).logits.float().numpy()
    ours = to_numpy(model(expected.tokens))
    # Both are as far from float32 as the roundings of some thirty operations.
    assert difference(ours, expected.scores) < 2.5 * difference(rounded, expected.scores)
    assert np.mean(np.abs(ours - expected.scores)) < 1.5 * np.mean(np.abs(rounded - expected.scores))


def test_every_architecture_has_three_cases() -> None:
    kinds = [name.partition("-")[0] for name in CASES]
    decoders = {kind for kind, (module, _) in models.architectures.ARCHITECTURES.items() if module in ("gpt2", "llama")}
    assert {kind: kinds.count(kind) for kind in kinds} == dict.fromkeys(decoders, 3)


def test_a_model_is_made_of_a_configuration(backend: Backend, tmp_path: Path) -> None:
    from ember_ml.models.llama import Qwen3, Qwen3Config

    model = Qwen3(Qwen3Config.from_dict(CASES["qwen3-plain"]))
    models.save(model.eval(), tmp_path)
    again = models.load(tmp_path / "model.safetensors")
    assert type(again) is Qwen3
    assert difference(to_numpy(model([[1, 2, 3]])), to_numpy(again([[1, 2, 3]]))) < 1e-5
    assert transformers.AutoConfig.from_pretrained(tmp_path).num_attention_heads == 3


def test_entries_that_are_not_used_are_kept(tmp_path: Path) -> None:
    folder = edited(tmp_path, config={"id2label": {"0": "yes"}, "eos_token_id": [5, 6]})
    with ember_ml.use_backend("numpy"):
        models.save(models.load(folder), tmp_path / "new")
    kept = json.loads((tmp_path / "new" / "config.json").read_text())
    assert kept["id2label"] == {"0": "yes"}
    assert kept["eos_token_id"] == [5, 6]
    assert kept["architectures"] == ["LlamaForCausalLM"]
    assert kept["model_type"] == "llama"


def test_older_entries_of_rotary_positions(backend: Backend, tmp_path: Path) -> None:
    expected = reference("llama-yarn")
    folder = copytree(expected.folder, tmp_path / "old")
    config = json.loads((folder / "config.json").read_text())
    options = config.pop("rope_parameters")
    config["rope_theta"] = options.pop("rope_theta")
    config["rope_scaling"] = {"type": options.pop("rope_type"), **options}
    (folder / "config.json").write_text(json.dumps(config))
    assert difference(to_numpy(models.load(folder)(expected.tokens)), expected.scores) < 1e-4


def test_files_of_a_model_without_its_head_and_masks_of_old_versions(backend: Backend, tmp_path: Path) -> None:
    """The published GPT-2 is such a file."""
    expected = reference("gpt2-plain")
    folder = copytree(expected.folder, tmp_path / "old")
    with ember_ml.use_backend("numpy"):
        tensors = ops.load(folder / "model.safetensors")
        tensors = {name.removeprefix("transformer."): x for name, x in tensors.items()}
        tensors["h.0.attn.bias"] = ops.ones((1, 1, 96, 96))
        ops.save(folder / "model.safetensors", tensors)
    assert difference(to_numpy(models.load(folder)(expected.tokens)), expected.scores) < 1e-4


def rewritten(tmp_path: Path, name: str, change: Callable[[dict[str, Any]], dict[str, Any]], **entries: Any) -> Path:
    """Folder of a case with other tensors, and other entries of ``config.json``."""
    folder = copytree(reference(name).folder, tmp_path / "other")
    with ember_ml.use_backend("numpy"):
        ops.save(folder / "model.safetensors", change(ops.load(folder / "model.safetensors")))
    config = json.loads((folder / "config.json").read_text())
    kept = {key: x for key, x in config.items() if entries.get(key, 0) is not ...}
    (folder / "config.json").write_text(json.dumps({**kept, **{key: x for key, x in entries.items() if x is not ...}}))
    return folder


def without_prefix(tensors: dict[str, Any]) -> dict[str, Any]:
    return {name.removeprefix("transformer.").removeprefix("model."): x for name, x in tensors.items()}


_FREQUENCIES = np.ones(3, "f4")


@pytest.mark.parametrize(
    ("name", "change", "entries"),
    [
        ("gpt2-plain", lambda x: {**without_prefix(x), "lm_head.weight": x["transformer.wte.weight"]}, {}),
        ("gpt2-plain", lambda x: {**x, "transformer.h.1.attn.masked_bias": _FREQUENCIES[0]}, {}),
        ("gpt2-plain", lambda x: x, {"hidden_size": 24, "n_embd": ..., "num_attention_heads": 3, "n_head": ...}),
        ("gpt2-plain", lambda x: x, {"num_hidden_layers": 2, "max_position_embeddings": 96, "n_positions": ...}),
        ("gpt2-plain", lambda x: x, {"activation_function": "gelu_fast"}),
        ("gpt2-untied", lambda x: x, {"activation_function": "gelu_python"}),
        ("llama-plain", lambda x: {**x, "model.rotary_emb.inv_freq": _FREQUENCIES}, {}),
        ("llama-plain", lambda x: {**x, "model.layers.1.self_attn.rotary_emb.inv_freq": _FREQUENCIES}, {}),
        ("llama-plain", lambda x: {**x, "model.layers.1.self_attn.rotary_emb.cos_cached": _FREQUENCIES}, {}),
        ("llama-plain", lambda x: {**x, "model.layers.0.self_attn.rotary_emb.sin_cached": _FREQUENCIES}, {}),
        ("llama-plain", lambda x: {**x, "model.causal_mask": _FREQUENCIES}, {}),
        ("llama-yarn", lambda x: {**x, "lm_head.weight": x["model.embed_tokens.weight"]}, {}),
        (
            "llama-yarn",
            lambda x: {name.replace("model.embed_tokens", "lm_head"): tensor for name, tensor in x.items()},
            {},
        ),
    ],
)
def test_other_layouts_that_transformers_reads(name: str, change: Any, entries: dict[str, Any], tmp_path: Path) -> None:
    expected = reference(name)
    with ember_ml.use_backend("numpy"):
        model = models.load(rewritten(tmp_path, name, change, **entries))
        assert difference(to_numpy(model(expected.tokens)), expected.scores) < 1e-4


def test_tensors_that_an_index_does_not_list_are_not_loaded(backend: Backend, tmp_path: Path) -> None:
    folder = edited(tmp_path, sharded=True)
    path = folder / "model.safetensors.index.json"
    table = json.loads(path.read_text())["weight_map"]
    shards = sorted(set(table.values()))
    first, second = shards[0], next(name for name in shards if name != table[NORM])
    with ember_ml.use_backend("numpy"):
        changes = {first: {"model.rotary_emb.inv_freq": _FREQUENCIES, "other": _FREQUENCIES}, second: {}}
        # Another tensor of the same name, in a file that the index does not name for it.
        changes[second][NORM] = np.zeros(24, "f4")
        for name, tensors in changes.items():
            ops.save(folder / name, {**ops.load(folder / name), **tensors})
    expected = reference("llama-plain")
    assert difference(to_numpy(models.load(folder)(expected.tokens)), expected.scores) < 1e-4


REMOVE = "remove them from the files if the model has no such layers"


@pytest.mark.parametrize(
    ("name", "extra", "lines"),
    [
        ("gpt2-plain", ["v_head.summary.weight"], ["v_head.summary.weight (load with {} leaves them out)"]),
        ("llama-plain", ["score.weight"], ["score.weight (load with {} leaves them out)"]),
        ("llama-plain", ["model.norm.x", "model.norm.y"], [f"model.norm.x, model.norm.y ({REMOVE})"]),
        (
            "llama-plain",
            ["model.layers.2.x", "score.weight"],
            [f"model.layers.2.x ({REMOVE})", "score.weight (load with {} leaves them out)"],
        ),
    ],
)
def test_the_error_of_extra_tensors_says_what_to_do(
    name: str, extra: list[str], lines: list[str], tmp_path: Path
) -> None:
    expected = reference(name)
    folder = rewritten(tmp_path, name, lambda x: {**x, **dict.fromkeys(extra, _FREQUENCIES)})
    architecture = type(expected.model).__name__
    with ember_ml.use_backend("numpy"):
        with pytest.raises(ValueError, match="extra") as caught:
            models.load(folder)
        option = f"architecture={architecture!r}"
        assert str(caught.value).splitlines()[1:] == [f"extra: {line.format(option)}" for line in lines]
        # The layers of another head are left out then, and nothing else.
        if REMOVE not in lines[0]:
            model = models.load(folder, architecture=architecture)
            assert difference(to_numpy(model(expected.tokens)), expected.scores) < 1e-4
        else:
            with pytest.raises(ValueError, match="extra") as caught:
                models.load(folder, architecture=architecture)
            assert str(caught.value).splitlines()[1:] == [f"extra: {lines[0]}"]


def test_other_names_of_entries_must_agree(tmp_path: Path) -> None:
    folder = rewritten(tmp_path, "gpt2-plain", lambda x: x, hidden_size=30)
    with pytest.raises(ValueError, match=r"config\.json: n_embd must be 30 as hidden_size, .* got 24"):
        models.load(folder)


@pytest.mark.parametrize("name", ["gpt2-plain", "llama-yarn"])
def test_an_output_layer_that_differs_from_the_tied_embedding_is_loaded(
    backend: Backend, name: str, tmp_path: Path
) -> None:
    expected = reference(name)
    head = np.random.default_rng(0).normal(size=(100, 24)).astype("f4")
    folder = rewritten(tmp_path, name, lambda x: {**x, "lm_head.weight": head})
    with pytest.warns(UserWarning, match=r"tie_word_embeddings is true .* another tensor lm_head\.weight"):
        model = models.load(folder)
    assert not model.config.tie_word_embeddings
    scores, states = model(expected.tokens, hidden_states=True)
    assert difference(to_numpy(states[-1]), expected.states[-1]) < 1e-4
    assert difference(to_numpy(scores), expected.states[-1] @ head.T) < 1e-4


def test_the_files_of_a_model_without_a_head_are_those_of_a_tied_decoder(tmp_path: Path) -> None:
    for name, kind in (("llama-yarn", "LlamaModel"), ("llama-plain", "LlamaModel")):
        headless = lambda x: {key: y for key, y in without_prefix(x).items() if key != "lm_head.weight"}  # noqa: E731
        folder = rewritten(tmp_path / name, name, headless, architectures=[kind])
        with pytest.raises(UnsupportedError, match=r"got \['LlamaModel'\]; load with architecture= reads"):
            models.load(folder)
        with ember_ml.use_backend("numpy"):
            if name == "llama-plain":
                with pytest.raises(ValueError, match=r"missing: lm_head\.weight$"):
                    models.load(folder, architecture="LlamaForCausalLM")
            else:
                scores = models.load(folder, architecture="LlamaForCausalLM")(reference(name).tokens)
                assert difference(to_numpy(scores), reference(name).scores) < 1e-4


@pytest.mark.parametrize(
    ("scaling", "length", "expected"),
    [
        (None, 32, 32),
        ({"type": "linear", "factor": 4.0}, 32, 128),
        ({"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}, 32, 128),
        ({"rope_type": "yarn", "factor": 2.5}, 32, 80),
        ({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8}, 32, 32),
        (
            {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
             "original_max_position_embeddings": 16},
            128,
            128,
        ),
    ],
)  # fmt: skip
def test_scaled_positions_lengthen_the_context(scaling: dict[str, Any] | None, length: int, expected: int) -> None:
    from ember_ml.models.llama import Llama, LlamaConfig

    values = {**CASES["llama-plain"], "max_position_embeddings": length, "rope_scaling": scaling}
    with ember_ml.use_backend("numpy"):
        model = Llama(LlamaConfig.from_dict(values))
        assert model.max_positions == expected
        assert tuple(model([[1] * expected], last=True).shape) == (1, 1, 100)
        with pytest.raises(ValueError, match=f"a length of at most {expected}, .* got {expected + 1}"):
            model([[1] * (expected + 1)])


def scores_of_transformers(expected: Any, folder: Path) -> Any:
    """What transformers computes for the tokens of a case with the files of a folder."""
    theirs = type(expected.model).from_pretrained(folder, attn_implementation=ATTENTION).eval()
    with torch.no_grad():
        return theirs(torch.tensor(expected.tokens)).logits.numpy()


@pytest.mark.parametrize("name", ["llama-llama3", "llama-yarn"])
def test_the_original_length_outside_the_rotary_entries_takes_precedence(name: str, tmp_path: Path) -> None:
    expected = reference(name)
    folder = rewritten(tmp_path, name, lambda x: x, original_max_position_embeddings=4096)
    scores = scores_of_transformers(expected, folder)
    assert difference(scores, expected.scores) > 1e-3
    with ember_ml.use_backend("numpy"):
        model = models.load(folder)
        assert difference(to_numpy(model(expected.tokens)), scores) < 1e-4
        models.save(model, tmp_path / "again")
    assert json.loads((tmp_path / "again" / "config.json").read_text())["original_max_position_embeddings"] == 4096


@pytest.mark.parametrize(
    "scaling", [{"type": "linear", "factor": 3.0}, {"rope_type": "yarn", "factor": 4.0, "rope_theta": 700.0}]
)
@pytest.mark.parametrize("name", ["llama-plain", "llama-llama3"])
def test_rope_scaling_takes_precedence_over_rope_parameters(name: str, scaling: dict[str, Any], tmp_path: Path) -> None:
    """Pages of models say to add ``rope_scaling``, and transformers 5 writes ``rope_parameters``."""
    expected = reference(name)
    theta = json.loads((expected.folder / "config.json").read_text())["rope_parameters"]["rope_theta"]
    parameters = {"rope_theta": theta, **scaling}
    folder = rewritten(tmp_path / "new", name, lambda x: x, rope_parameters=parameters)
    scores = scores_of_transformers(expected, folder)
    assert difference(scores, expected.scores) > 1e-3
    with ember_ml.use_backend("numpy"):
        replaced = models.load(expected.folder, config={"rope_scaling": scaling})
        written = models.load(rewritten(tmp_path, name, lambda x: x, rope_scaling=scaling))
        for model in (replaced, written):
            assert difference(to_numpy(model(expected.tokens)), scores) < 1e-4
        models.save(replaced, tmp_path / "again")
    assert difference(scores_of_transformers(expected, tmp_path / "again"), scores) < 1e-4


@pytest.mark.parametrize(
    ("name", "entries"),
    [
        ("mistral-window", ["attention_bias", "mlp_bias"]),
        ("qwen2-plain", ["attention_bias", "mlp_bias"]),
        ("qwen3-plain", ["mlp_bias"]),
        ("gemma-plain", ["mlp_bias"]),
        ("gemma2-caps", ["mlp_bias"]),
    ],
)
def test_entries_of_biases_that_an_architecture_does_not_have_are_ignored(
    name: str, entries: list[str], tmp_path: Path
) -> None:
    expected = reference(name)
    folder = rewritten(tmp_path, name, lambda x: x, **dict.fromkeys(entries, True))
    assert difference(scores_of_transformers(expected, folder), expected.scores) < 1e-6
    with ember_ml.use_backend("numpy"):
        assert difference(to_numpy(models.load(folder)(expected.tokens)), expected.scores) < 1e-4


def _in_float8(tensors: dict[str, Any]) -> dict[str, Any]:
    return {name: x.to(torch.float8_e4m3fn) if "mlp" in name else x for name, x in tensors.items()}


def _in_int8(tensors: dict[str, Any]) -> dict[str, Any]:
    return {name: x.to(torch.int8) if "mlp" in name else x for name, x in tensors.items()}


def _with_scales(tensors: dict[str, Any]) -> dict[str, Any]:
    return {**tensors, "model.layers.0.mlp.up_proj.scales": torch.ones(3)}


@pytest.mark.parametrize("change", [_in_float8, _in_int8, _with_scales])
def test_quantized_weights_are_refused_by_their_entry(change: Any, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = edited(tmp_path, config={"quantization_config": {"quant_method": "fp8"}})
    with ember_ml.use_backend("numpy"):
        # What an entry says is not needed where the weights are not quantized.
        expected = reference("llama-plain")
        assert difference(to_numpy(models.load(folder)(expected.tokens)), expected.scores) < 1e-4
        path = folder / "model.safetensors"
        save_file(change(load_file(path)), path)
        with pytest.raises(
            UnsupportedError, match=r"config\.json: weights must not be quantized, got quantization_config"
        ):
            models.load(folder)


def test_the_stop_tokens_are_those_of_generation_config(tmp_path: Path) -> None:
    folder = edited(tmp_path, config={"eos_token_id": 3})
    values = {"eos_token_id": [5, 6], "temperature": 0.6, "transformers_version": "4.1"}
    (folder / "generation_config.json").write_text(json.dumps(values))
    with ember_ml.use_backend("numpy"):
        model = models.load(folder)
        assert model.stop_tokens == (5, 6)
        models.save(model, tmp_path / "again")
        assert models.load(tmp_path / "again").stop_tokens == (5, 6)
        assert json.loads((tmp_path / "again" / "generation_config.json").read_text()) == values
        (folder / "generation_config.json").write_text('{"temperature": 1.0}')
        assert models.load(folder).stop_tokens == (3,)
        (folder / "generation_config.json").unlink()
        assert models.load(folder).stop_tokens == (3,)


def test_entries_of_config_are_replaced(tmp_path: Path) -> None:
    folder = reference("llama-plain").folder
    with ember_ml.use_backend("numpy"):
        model = models.load(folder, config={"rms_norm_eps": 0.1, "max_position_embeddings": 50})
        assert (model.config.rms_norm_eps, model.max_positions) == (0.1, 50)
    with pytest.raises(ValueError, match=r"config\.json: config must have entries of .*, vocab_size, got rms_eps"):
        models.load(folder, config={"rms_eps": 0.1})
    with pytest.raises(ValueError, match=r"config\.json: rms_norm_eps must be a number, got 'x'"):
        models.load(folder, config={"rms_norm_eps": "x"})
    with pytest.raises(ValueError, match=r"architecture must be one of LlamaForCausalLM for llama, got 'Llama'"):
        models.load(folder, architecture="Llama")


def test_nothing_is_initialized(monkeypatch: pytest.MonkeyPatch, backend: Backend) -> None:
    from ember_ml.nn import initializers

    expected = reference("llama-plain")

    def fail(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError

    monkeypatch.setattr(initializers, "INITIALIZERS", dict.fromkeys(initializers.INITIALIZERS, fail))
    assert difference(to_numpy(models.load(expected.folder)(expected.tokens)), expected.scores) < 1e-4


def test_tensors_on_the_cpu_are_views_of_the_file() -> None:
    """Which is how a model of more than half of the memory is loaded."""
    folder = reference("llama-plain").folder
    with ember_ml.use_backend("numpy"):
        weight = models.load(folder).layers[0].attention.query.weight
        while isinstance(weight, np.ndarray):
            weight = weight.base
        assert isinstance(weight.obj, mmap)
    with ember_ml.use_backend("torch"):
        weight = models.load(folder).layers[0].attention.query.weight
        assert "model.safetensors" in Path("/proc/self/maps").read_text() or not Path("/proc/self/maps").exists()
        assert weight.T.is_contiguous()


@pytest.mark.parametrize("dtype", [None, "float32"])
def test_weights_in_float64_are_read(backend: Backend, dtype: str | None, tmp_path: Path) -> None:
    with ember_ml.use_backend("numpy"):
        expected = models.load(reference("llama-plain").folder, dtype="float64")
        models.save(expected, tmp_path)
    found = models.load(tmp_path, dtype=dtype)
    assert {str(ops.dtype(x)) for x in found.parameters().values()} == {dtype or "float64"}
    np.testing.assert_array_equal(ops.to_numpy(found.embedding.weight), expected.embedding.weight)


@pytest.mark.parametrize("dtype", ["int32", "bool", "complex64"])
def test_a_dtype_must_be_floating(dtype: str) -> None:
    with pytest.raises(TypeError, match=f"load: dtype must be floating, got {dtype}"):
        models.load(reference("llama-plain").folder, dtype)


def test_save_takes_models_of_this_package(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"save: model must be one of ember_ml\.models, got Linear"):
        models.save(ember_ml.nn.modules.Linear(2, 2), tmp_path)
    with ember_ml.use_backend("numpy"), pytest.raises(ValueError, match="max_shard_size must be >= 1, got 0"):
        models.save(models.load(reference("llama-plain").folder), tmp_path, max_shard_size=0)


def test_a_save_replaces_the_files_of_an_earlier_one(tmp_path: Path) -> None:
    with ember_ml.use_backend("numpy"):
        model = models.load(reference("llama-plain").folder)
        models.save(model, tmp_path, max_shard_size=9000)
        models.save(model, tmp_path)
        names = ["config.json", "generation_config.json", "model.safetensors"]
        assert sorted(path.name for path in tmp_path.iterdir()) == names
        models.save(model, tmp_path, max_shard_size=9000)
        names = [path.name for path in tmp_path.iterdir()]
        assert "model.safetensors" not in names
        assert "model.safetensors.index.json" in names
        assert models.load(tmp_path).generate([1], 3, temperature=0) == model.generate([1], 3, temperature=0)


def test_a_save_keeps_files_of_the_user(tmp_path: Path) -> None:
    own = ["model_ema.safetensors", "model-best.safetensors", "model2.safetensors", "model.safetensors.bak"]
    for name in own:
        (tmp_path / name).write_bytes(b"precious")
    with ember_ml.use_backend("numpy"):
        model = models.load(reference("llama-plain").folder)
        for size in (9000, 10**9):
            models.save(model, tmp_path, max_shard_size=size)
    assert [(tmp_path / name).read_bytes() for name in own] == [b"precious"] * 4
    assert not list(tmp_path.glob("model-0*"))


SHARDED, SINGLE = 30000, 10**9


@pytest.mark.parametrize("is_other", [False, True])
@pytest.mark.parametrize(
    ("before", "after"), [(SINGLE, SINGLE), (SINGLE, SHARDED), (SHARDED, SINGLE), (SHARDED, SHARDED), (SHARDED, 20000)]
)
def test_a_save_that_fails_at_any_step_leaves_no_mixture(
    before: int, after: int, is_other: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ember_ml.use_backend("numpy"):
        old, new = (models.load(reference("llama-plain").folder) for _ in range(2))
        new.assign({path: ops.multiply(x, 2.0) for path, x in new.tensors().items()})
        if is_other:
            object.__setattr__(new, "config", dataclasses.replace(new.config, rms_norm_eps=1e-3))
        models.save(old, tmp_path / "start", max_shard_size=before)
        weights = {name: identity(model) for name, model in (("old", old), ("new", new))}
        seen: list[str] = []
        for number in range(100):
            folder = copytree(tmp_path / "start", tmp_path / str(number))
            with monkeypatch.context() as patch:
                steps = failing_at(number, patch)
                try:
                    models.save(new, folder, max_shard_size=after)
                except OSError:
                    pass
                else:
                    # Only an error of the fsync of a folder, after the replacement of a file, is ignored.
                    if len(steps) > number:
                        continue
                    break
            try:
                found = identity(models.load(folder))
            except FileNotFoundError:
                seen.append("none")
            else:
                seen.append(next(name for name, model in weights.items() if model == found))
            assert not list(folder.glob(".ember*"))
            if not {"replace", "unlink"} & set(steps[:number]):
                assert seen[-1] == "old"
        assert identity(models.load(folder)) == weights["new"]
    assert seen[0] == "old"
    assert seen == sorted(seen, key=["old", "none", "new"].index)
    if before == after == SINGLE and not is_other:
        # The file of the weights is replaced in one step.
        assert "none" not in seen


def identity(model: Any) -> Any:
    """What distinguishes two models."""
    return model.config.rms_norm_eps, {path: ops.to_numpy(x).tobytes() for path, x in model.tensors().items()}


def failing_at(number: int, patch: pytest.MonkeyPatch) -> list[str]:
    """Names of the steps of writing, which grow as they begin; the one of this number fails."""
    steps: list[str] = []

    def count(owner: Any, name: str) -> None:
        function = getattr(owner, name)

        def step(*args: Any, **kwargs: Any) -> Any:
            steps.append(name)
            if len(steps) == number + 1:
                raise OSError(errno.ENOSPC, "full")
            return function(*args, **kwargs)

        patch.setattr(owner, name, step)

    count(checkpoints.files, "write_tensors")
    count(os, "fsync")
    count(os, "replace")
    count(Path, "unlink")
    return steps


# Malformed folders: a change of a good folder, the class of the error, and what its message must name.


def edited(tmp_path: Path, *, config: dict[str, Any] | None = None, sharded: bool = False) -> Path:
    folder = copytree(reference("llama-plain").folder, tmp_path / "model")
    if sharded:
        with ember_ml.use_backend("numpy"):
            models.save(models.load(folder), folder, max_shard_size=9000)
    if config:
        path = folder / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **config}))
    return folder


def with_config(**entries: Any) -> Callable[[Path], Path]:
    return lambda tmp_path: edited(tmp_path, config=entries)


def with_tensors(change: Callable[[dict[str, Any]], None]) -> Callable[[Path], Path]:
    def make(tmp_path: Path) -> Path:
        folder = edited(tmp_path)
        with ember_ml.use_backend("numpy"):
            tensors = ops.load(folder / "model.safetensors")
            change(tensors)
            ops.save(folder / "model.safetensors", tensors)
        return folder

    return make


def with_header(change: Callable[[dict[str, Any]], None]) -> Callable[[Path], Path]:
    def make(tmp_path: Path) -> Path:
        path = edited(tmp_path) / "model.safetensors"
        data = path.read_bytes()
        (size,) = struct.unpack("<Q", data[:8])
        header = json.loads(data[8 : 8 + size])
        change(header)
        text = json.dumps(header).encode()
        path.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + size :])
        return path.parent

    return make


def with_index(change: Callable[[Path, dict[str, str]], Any]) -> Callable[[Path], Path]:
    def make(tmp_path: Path) -> Path:
        folder = edited(tmp_path, sharded=True)
        path = folder / "model.safetensors.index.json"
        index = json.loads(path.read_text())
        index["weight_map"] = change(folder, index["weight_map"]) or index["weight_map"]
        path.write_text(json.dumps(index))
        return folder

    return make


def with_file(name: str, change: Callable[[Path], Any]) -> Callable[[Path], Path]:
    def make(tmp_path: Path) -> Path:
        folder = edited(tmp_path)
        change(folder / name)
        return folder

    return make


NORM, HEAD, GATE = "model.norm.weight", "lm_head.weight", "model.layers.1.mlp.gate_proj.weight"


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def pickled(path: Path) -> None:
    path.rename(path.with_name("pytorch_model.bin"))


def misshapen(tensors: dict[str, Any]) -> None:
    tensors[NORM] = tensors[NORM][:-1]
    tensors[GATE] = tensors[GATE].T
    del tensors[HEAD]
    tensors["model.layers.2.mlp.up_proj.weight"] = tensors[NORM]


MALFORMED: dict[str, tuple[Callable[[Path], Path], type[Exception], list[str]]] = {
    "no folder": (lambda path: path / "none", FileNotFoundError, ["none"]),
    "no config.json": (with_file("config.json", Path.unlink), FileNotFoundError, ["config.json"]),
    "config.json is no JSON": (with_file("config.json", lambda p: p.write_text("{")), ValueError, ["config.json"]),
    "config.json is a list": (with_file("config.json", lambda p: p.write_text("[]")), ValueError, ["config.json"]),
    "unknown model type": (
        with_config(model_type="bloom"),
        UnsupportedError,
        ["config.json", "'bloom'", "gpt2", "qwen3"],
    ),
    "unknown class": (
        with_config(architectures=["LlamaForTokenClassification"]),
        UnsupportedError,
        ["config.json", "LlamaForCausalLM", "LlamaForTokenClassification"],
    ),
    "entry of a wrong type": (
        with_config(hidden_size="24", rms_norm_eps=None),
        ValueError,
        ["config.json", "hidden_size must be an integer, got '24'", "rms_norm_eps must be a number, got None"],
    ),
    "heads that do not divide": (
        with_config(num_key_value_heads=2),
        ValueError,
        ["config.json", "num_kv_heads must divide num_heads"],
    ),
    "unknown activation": (with_config(hidden_act="step"), ValueError, ["config.json", "'step'", "silu"]),
    "unknown rotary scaling": (
        with_config(rope_parameters={"rope_type": "longrope"}),
        ValueError,
        ["config.json", "'longrope'", "yarn"],
    ),
    "generation_config.json is no JSON": (
        with_file("generation_config.json", lambda p: p.write_text("{")),
        ValueError,
        ["generation_config.json must be JSON"],
    ),
    "a stop token that is no integer": (
        with_file("generation_config.json", lambda p: p.write_text('{"eos_token_id": [1, "x"]}')),
        ValueError,
        ["generation_config.json: Llama: eos_token_id must be an integer or a list of integers, got [1, 'x']"],
    ),
    "no weights": (with_file("model.safetensors", Path.unlink), FileNotFoundError, ["model.safetensors"]),
    "a pickle": (with_file("model.safetensors", pickled), ValueError, ["pytorch_model.bin", "save_pretrained"]),
    "an empty file": (with_file("model.safetensors", lambda p: p.write_bytes(b"")), ValueError, ["model.safetensors"]),
    "a truncated file": (with_file("model.safetensors", cut), ValueError, ["model.safetensors", "model."]),
    "a header that is no JSON": (
        with_file("model.safetensors", lambda p: p.write_bytes(struct.pack("<Q", 4) + b"nope")),
        ValueError,
        ["model.safetensors"],
    ),
    "a header longer than the file": (
        with_file("model.safetensors", lambda p: p.write_bytes(struct.pack("<Q", 10**6) + b"{}")),
        ValueError,
        ["model.safetensors", "1000000"],
    ),
    "an unknown dtype": (
        with_header(lambda header: header[NORM].update(dtype="F3")),
        ValueError,
        ["model.safetensors", NORM, "F3"],
    ),
    "offsets of another size": (
        with_header(lambda header: header[NORM].update(shape=[25])),
        ValueError,
        ["model.safetensors", NORM, "100 bytes"],
    ),
    "offsets beyond the file": (
        with_header(lambda header: header[NORM].update(data_offsets=[10**9, 10**9 + 96])),
        ValueError,
        ["model.safetensors", NORM],
    ),
    "tensors that are missing, left over, misshapen": (
        with_tensors(misshapen),
        ValueError,
        [
            "model.safetensors",
            f"missing: {HEAD}",
            "extra: model.layers.2.mlp.up_proj.weight",
            NORM,
            GATE,
            "[23]",
            "[24, 40]",
        ],
    ),
    "integers for weights": (
        with_tensors(lambda tensors: tensors.update({NORM: tensors[NORM].astype("int32")})),
        ValueError,
        ["model.safetensors", NORM, "int32"],
    ),
    "an index of an absent file": (
        with_index(lambda folder, table: (folder / table[NORM]).unlink()),
        FileNotFoundError,
        ["model.safetensors.index.json", "model-0"],
    ),
    "an index of absent tensors": (
        with_index(lambda folder, table: {**table, "model.other": table[NORM]}),
        ValueError,
        ["model.safetensors.index.json", "model.other"],
    ),
    "an index without a tensor": (
        with_index(lambda folder, table: {name: file for name, file in table.items() if name != NORM}),
        ValueError,
        ["model.safetensors.index.json", NORM],
    ),
    "an index of other folders": (
        with_index(lambda folder, table: {**table, NORM: "../model.safetensors"}),
        ValueError,
        ["model.safetensors.index.json", "../model.safetensors"],
    ),
    "an index of no table": (
        with_index(lambda folder, table: ["x"]),
        ValueError,
        ["model.safetensors.index.json", "weight_map"],
    ),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_folders(backend: Backend, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make, kind, named = MALFORMED[name]
    folder = make(tmp_path)
    assigned: list[Any] = []
    monkeypatch.setattr(models.PretrainedModel, "assign", lambda self, values: assigned.append(values))
    with pytest.raises(kind) as caught:
        models.load(folder)
    assert all(text in str(caught.value) for text in named), str(caught.value)
    # No model has got a tensor.
    assert assigned == []


def test_there_are_twenty_malformed_folders() -> None:
    assert len(MALFORMED) >= 20


def test_a_pickle_is_refused_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(b"")
    with pytest.raises(ValueError, match=r"model\.bin is not read: it may hold a pickle"):
        models.load(tmp_path / "model.bin")
    with pytest.raises(ValueError, match=r"must be a folder, a \.safetensors file or its index, got"):
        models.load(reference("llama-plain").folder / "config.json")


def test_a_save_that_fails_leaves_no_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ember_ml.use_backend("numpy"):
        model = models.load(reference("llama-plain").folder)

        def fail(*args: Any) -> None:
            raise OSError("full")

        monkeypatch.setattr(checkpoints.files, "write_tensors", fail)
        with pytest.raises(OSError, match="full"):
            models.save(model, tmp_path)
    assert list(tmp_path.iterdir()) == []
