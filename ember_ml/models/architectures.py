"""Table of architectures: names in ``config.json``, and the classes that compute them, imported when needed."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ember_ml.errors import UnsupportedError

if TYPE_CHECKING:
    from ember_ml.models.pretrained import PretrainedModel

# By ``model_type``: the module below ``ember_ml.models``, and its class for each name in ``architectures``. The first
# is that of a config.json without ``architectures``.
ARCHITECTURES: dict[str, tuple[str, dict[str, str]]] = {
    "bert": (
        "bert",
        {"BertModel": "Bert", "BertForMaskedLM": "BertMaskedLM", "BertForSequenceClassification": "BertClassifier"},
    ),
    "gpt2": ("gpt2", {"GPT2LMHeadModel": "GPT2"}),
    "llama": ("llama", {"LlamaForCausalLM": "Llama"}),
    "mistral": ("llama", {"MistralForCausalLM": "Mistral"}),
    "qwen2": ("llama", {"Qwen2ForCausalLM": "Qwen2"}),
    "qwen3": ("llama", {"Qwen3ForCausalLM": "Qwen3"}),
    "gemma": ("llama", {"GemmaForCausalLM": "Gemma"}),
    "gemma2": ("llama", {"Gemma2ForCausalLM": "Gemma2"}),
    "resnet": ("resnet", {"ResNetModel": "ResNet", "ResNetForImageClassification": "ResNetClassifier"}),
    "roberta": (
        "bert",
        {
            "RobertaModel": "Roberta",
            "RobertaForMaskedLM": "RobertaMaskedLM",
            "RobertaForSequenceClassification": "RobertaClassifier",
        },
    ),
    "vit": ("vit", {"ViTModel": "ViT", "ViTForImageClassification": "ViTClassifier"}),
}


def known_architectures() -> dict[str, list[str]]:
    """Names of the architectures that ``load`` reads, by ``model_type``.

    >>> known_architectures()["gpt2"]
    ['GPT2LMHeadModel']
    """
    return {model_type: list(classes) for model_type, (_, classes) in ARCHITECTURES.items()}


def architecture_of(model: PretrainedModel) -> str:
    """Name for ``architectures`` in the ``config.json`` of a model."""
    _, classes = ARCHITECTURES[model.config.model_type]
    return next(name for name, kind in classes.items() if kind == type(model).__name__)


def find_architecture(values: dict[str, Any], architecture: str | None = None) -> type[PretrainedModel]:
    """Class of the model that the entries of a ``config.json`` describe, or the one that is named ``architecture``."""
    model_type, names = values.get("model_type"), values.get("architectures")
    if not isinstance(model_type, str) or model_type not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise UnsupportedError(f"model_type must be one of {known}, got {model_type!r}")
    module, classes = ARCHITECTURES[model_type]
    if architecture is not None:
        if architecture not in classes:
            raise ValueError(f"architecture must be one of {', '.join(classes)} for {model_type}, got {architecture!r}")
        names = [architecture]
    if names is None or names == []:
        names = [next(iter(classes))]
    if not isinstance(names, list) or len(names) != 1 or names[0] not in classes:
        known = ", ".join(classes)
        raise UnsupportedError(
            f"architectures must be a list of one of {known} for {model_type}, got {names!r}; load with architecture= "
            "reads the files as another"
        )
    found: type[PretrainedModel] = getattr(import_module(f"ember_ml.models.{module}"), classes[names[0]])
    return found
