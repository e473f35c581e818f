"""Small decoders of ``transformers`` with random weights, in folders, and what they compute."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, NamedTuple

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

_PLAIN = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
_SMALL = {
    **_PLAIN,
    "vocab_size": 100,
    "hidden_size": 24,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "num_key_value_heads": 1,
    "max_position_embeddings": 96,
}
_GPT2 = {**_PLAIN, "vocab_size": 100, "n_positions": 96, "n_embd": 24, "n_layer": 2, "n_head": 3}
_LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
_YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 32}
_LINEAR = {"rope_type": "linear", "rope_theta": 1000.0, "factor": 2.5}
_MODELS = {
    "gpt2": ("GPT2Config", "GPT2LMHeadModel"),
    "llama": ("LlamaConfig", "LlamaForCausalLM"),
    "mistral": ("MistralConfig", "MistralForCausalLM"),
    "qwen2": ("Qwen2Config", "Qwen2ForCausalLM"),
    "qwen3": ("Qwen3Config", "Qwen3ForCausalLM"),
    "gemma": ("GemmaConfig", "GemmaForCausalLM"),
    "gemma2": ("Gemma2Config", "Gemma2ForCausalLM"),
}

CASES: dict[str, dict[str, Any]] = {
    "gpt2-plain": _GPT2,
    "gpt2-narrow": {**_GPT2, "n_embd": 30, "n_head": 5, "n_inner": 17, "activation_function": "relu"},
    "gpt2-untied": {
        **_GPT2,
        "n_layer": 3,
        "tie_word_embeddings": False,
        "scale_attn_by_inverse_layer_idx": True,
        "activation_function": "gelu",
    },
    "llama-plain": _SMALL,
    "llama-llama3": {
        **_SMALL,
        "num_key_value_heads": 3,
        "head_dim": 10,
        "attention_bias": True,
        "mlp_bias": True,
        "rope_parameters": _LLAMA3,
    },
    "llama-yarn": {**_SMALL, "tie_word_embeddings": True, "num_hidden_layers": 1, "rope_parameters": _YARN},
    "mistral-window": {**_SMALL, "sliding_window": 7},
    "mistral-wide": {**_SMALL, "sliding_window": None, "head_dim": 14, "num_attention_heads": 6},
    "mistral-linear": {**_SMALL, "sliding_window": 1000, "rope_parameters": _LINEAR, "hidden_act": "gelu"},
    "qwen2-plain": _SMALL,
    "qwen2-window": {**_SMALL, "use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1},
    "qwen2-tied": {**_SMALL, "tie_word_embeddings": True, "hidden_size": 48, "num_key_value_heads": 3},
    "qwen3-plain": {**_SMALL, "head_dim": 12},
    "qwen3-bias": {**_SMALL, "head_dim": 6, "attention_bias": True, "num_hidden_layers": 3},
    "qwen3-yarn": {**_SMALL, "head_dim": 8, "rope_parameters": _YARN, "tie_word_embeddings": True},
    "gemma-plain": {**_SMALL, "head_dim": 16},
    "gemma-relu": {**_SMALL, "head_dim": 8, "hidden_act": "relu", "num_key_value_heads": 3},
    "gemma-untied": {**_SMALL, "head_dim": 10, "tie_word_embeddings": False, "rms_norm_eps": 1e-3},
    "gemma2-caps": {
        **_SMALL,
        "head_dim": 16,
        "query_pre_attn_scalar": 20,
        "sliding_window": 6,
        "attn_logit_softcapping": 2.0,
        "final_logit_softcapping": 3.0,
    },
    "gemma2-no-caps": {**_SMALL, "head_dim": 8, "attn_logit_softcapping": None, "final_logit_softcapping": None},
    "gemma2-layers": {
        **_SMALL,
        "head_dim": 8,
        "num_hidden_layers": 3,
        "sliding_window": 4,
        "layer_types": ["full_attention", "sliding_attention", "full_attention"],
    },
}

LENGTH = 13

# transformers 5.17: fused attention ignores the caps of the scores of Gemma 2.
ATTENTION = "eager"


class Reference(NamedTuple):
    """Model of ``transformers`` in a folder, and what it computes."""

    folder: Path
    model: Any
    tokens: list[list[int]]
    scores: Any
    states: list[Any]
    greedy: list[int]


@cache
def reference(name: str) -> Reference:
    """Model of a case, with the first of its texts continued by 64 tokens."""
    config, kind = _MODELS[name.partition("-")[0]]
    generator = torch.Generator().manual_seed(len(name))
    values = getattr(transformers, config)(**CASES[name], attn_implementation=ATTENTION)
    model = getattr(transformers, kind)(values).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0.0, 0.2, generator=generator)
        folder = Path(mkdtemp(prefix="ember-ml-models-"))
        model.save_pretrained(folder)
        tokens = torch.randint(0, 100, (2, LENGTH), generator=generator)
        result = model(tokens, output_hidden_states=True)
        text = tokens[:1]
        for _ in range(64):
            text = torch.cat([text, model(text).logits[:, -1:].argmax(-1)], dim=1)
    states = [state.numpy() for state in result.hidden_states]
    return Reference(folder, model, tokens.tolist(), result.logits.numpy(), states, text[0, LENGTH:].tolist())


def difference(one: Any, other: Any) -> float:
    """Greatest difference of two arrays of equal shape."""
    assert one.shape == other.shape
    return float(np.max(np.abs(np.asarray(one, np.float64) - np.asarray(other, np.float64))))
