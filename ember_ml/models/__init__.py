"""Pretrained models: architectures whose weights are published, on every engine.

``load`` reads a folder in the layout of Hugging Face, ``save`` writes one that ``transformers`` opens.
"""

from ember_ml.models.adapters import load_adapter as load_adapter
from ember_ml.models.adapters import save_adapter as save_adapter
from ember_ml.models.architectures import known_architectures as known_architectures
from ember_ml.models.checkpoints import load as load
from ember_ml.models.checkpoints import save as save
from ember_ml.models.pretrained import Config as Config
from ember_ml.models.pretrained import PretrainedModel as PretrainedModel
from ember_ml.models.tokenizer import load_tokenizer as load_tokenizer

__all__ = [
    "Config",
    "PretrainedModel",
    "known_architectures",
    "load",
    "load_adapter",
    "load_tokenizer",
    "save",
    "save_adapter",
]
