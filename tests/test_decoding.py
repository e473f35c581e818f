"""The call of a decoder: what it takes as tokens, masks and caches, and attention in windows."""

from __future__ import annotations

from typing import Any
from weakref import ref

import numpy as np
import pytest
from decoders import reference

import ember_ml
from ember_ml import models, nn, ops
from ember_ml.backend import Backend
from ember_ml.models import llama
from ember_ml.nn import tensor
from ember_ml.nn.modules import decoding

TOKENS = [[0, 5, 9], [4, 8, 15]]
MASK = [[0, 1, 1], [1, 1, 1]]


def model(name: str = "llama-plain") -> Any:
    return models.load(reference(name).folder)


def assert_close(x: Any, y: Any) -> None:
    assert np.abs(np.asarray(x.tolist()) - np.asarray(y.tolist())).max() < 1e-5


def test_tokens_and_masks_may_be_lists_arrays_tensors_and_dictionaries(backend: Backend) -> None:
    found = model()
    expected = found(ops.asarray(TOKENS), mask=ops.asarray(MASK, dtype="bool"))
    assert np.abs(np.asarray((found(TOKENS)[:1] - expected[:1]).tolist())).max() > 0.01
    inputs = {"input_ids": np.asarray(TOKENS), "attention_mask": np.asarray(MASK), "token_type_ids": None}
    assert found(inputs).tolist() == expected.tolist()
    assert found(inputs, cache=3, last=True)[0].tolist() == found(TOKENS, mask=MASK, cache=3, last=True)[0].tolist()
    for make in (list, np.asarray, ops.asarray, tensor.asarray):
        assert found(make(TOKENS), mask=make(MASK)).tolist() == expected.tolist()
    assert found(TOKENS, mask=np.asarray(MASK, "float32")).tolist() == expected.tolist()
    for other in ember_ml.get_available_backends():
        with ember_ml.use_backend(other):
            assert found(TOKENS, mask=MASK).tolist() == expected.tolist()


@pytest.mark.device
def test_inputs_move_to_the_device_of_the_model(backend: Backend) -> None:
    found = model()
    tokens, mask = (ops.to_device(ops.asarray(x), "cpu") for x in (TOKENS, MASK))
    assert found(tokens, mask=mask).tolist() == found(TOKENS, mask=MASK).tolist()


@pytest.mark.parametrize("name", ["gemma2-layers", "qwen3-bias"])
def test_outputs_of_layers_are_kept_only_if_they_are_asked_for(
    backend: Backend, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    inputs: list[Any] = []
    alive: list[int] = []
    forward = llama.LlamaLayer.forward

    def counted(self: Any, x: Any, **options: Any) -> Any:
        inputs.append(ref(x))
        alive.append(sum(one() is not None for one in inputs))
        return forward(self, x, **options)

    monkeypatch.setattr(llama.LlamaLayer, "forward", counted)
    found = model(name)
    found(TOKENS)
    assert alive == [1, 1, 1]
    inputs.clear()
    assert len(found(TOKENS, hidden_states=True)[1]) == 4
    assert alive[3:] == [1, 2, 3]


def test_the_size_of_a_cache_may_be_a_number_of_numpy(backend: Backend) -> None:
    found = model()
    _, caches = found(TOKENS, cache=np.int64(8))
    assert {tuple(x.shape)[1] for cache in caches for x in cache} == {8}
    scores, _ = found([[7], [7]], cache=caches, at=3)
    assert_close(scores[:, 0], found([[*row, 7] for row in TOKENS], last=True)[:, 0])


@pytest.mark.parametrize("options", [{}, {"softcap": 2.0}])
@pytest.mark.parametrize(("length", "window", "block"), [(11, 4, 1), (11, 2, 4), (12, 6, 4), (7, 6, 1), (9, 1, 3)])
def test_windows_are_attended_to_in_blocks(
    backend: Backend, monkeypatch: pytest.MonkeyPatch, length: int, window: int, block: int, options: Any
) -> None:
    """Masks may be those of keys, of queries and keys, or of one of them alone."""
    monkeypatch.setattr(decoding, "_BLOCK", block)
    rows = np.random.default_rng(0)
    layer = nn.CausalSelfAttention(6, 2, num_kv_heads=1, **options)
    windowed = nn.CausalSelfAttention(6, 2, num_kv_heads=1, window=window, **options)
    windowed.load_state_dict(layer.state_dict())
    x = ops.asarray(rows.standard_normal((2, length, 6)).astype("float32"))
    place = np.arange(length)
    recent = place > place[:, None] - window
    assert_close(windowed(x), layer(x, mask=ops.asarray(recent)))
    for shape in ((2, 1, 1, length), (2, 2, length, length), (length, 1), (1, length), (length,)):
        mask = rows.random(shape) < 0.7
        expected = layer(x, mask=ops.asarray(np.broadcast_to(mask, (2, 2, length, length)) & recent))
        assert_close(windowed(x, mask=ops.asarray(mask)), expected)
        y, _ = windowed(x, mask=mask, cache=length)
        assert_close(y, expected)
