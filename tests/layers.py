"""Every layer with what it is called with, for the tests that all layers must pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ember_ml import nn, ops
from ember_ml.nn.wirings import NCP, AutoNCP, FullyConnected, Random

Case = tuple[Callable[[], Any], tuple[Any, ...]]

_draw = np.random.default_rng(7)


def floats(*shape: int) -> Any:
    return _draw.standard_normal(shape).astype(np.float32)


_tokens = np.array([[1, 0, 4], [3, 3, 2]])

_SCALING = {"rope_type": "linear", "factor": 2.0}

CASES: dict[str, Case] = {
    "Linear": (lambda: nn.Linear(3, 4), (floats(2, 3),)),
    "Linear, no bias": (lambda: nn.Linear(3, 4, bias=False), (floats(2, 5, 3),)),
    "Embedding": (lambda: nn.Embedding(5, 4), (_tokens,)),
    "PositionalEncoding": (lambda: nn.PositionalEncoding(6, 9), (floats(2, 5, 6),)),
    "PositionalEmbedding": (lambda: nn.PositionalEmbedding(6, 9), (floats(2, 5, 6),)),
    "PatchEmbedding": (lambda: nn.PatchEmbedding(2, 6, (2, 3)), (floats(2, 5, 6, 2),)),
    "LoRA": (lambda: nn.LoRA(nn.Sequential(nn.Linear(3, 4)), "0", rank=2, dropout=0.25), (floats(2, 3),)),
    "Conv1d": (lambda: nn.Conv1d(2, 4, 3, padding="same"), (floats(2, 7, 2),)),
    "Conv2d": (lambda: nn.Conv2d(2, 4, 3, strides=2, groups=2), (floats(2, 7, 6, 2),)),
    "Conv2d, first": (lambda: nn.Conv2d(2, 4, (3, 2), data_format="channels_first"), (floats(2, 2, 7, 6),)),
    "Conv3d": (lambda: nn.Conv3d(2, 4, 2), (floats(1, 3, 4, 3, 2),)),
    "ConvTranspose1d": (lambda: nn.ConvTranspose1d(2, 4, 3, strides=2), (floats(2, 4, 2),)),
    "ConvTranspose2d": (lambda: nn.ConvTranspose2d(2, 4, 3, strides=2), (floats(2, 4, 3, 2),)),
    "ConvTranspose3d": (lambda: nn.ConvTranspose3d(1, 2, 2), (floats(1, 2, 2, 2, 1),)),
    "RandomFlip": (lambda: nn.RandomFlip("horizontal_and_vertical"), (floats(6, 3, 4, 2),)),
    "RandomCrop": (lambda: nn.RandomCrop((3, 4), padding=1), (floats(4, 3, 4, 2),)),
    "RandomRotation": (lambda: nn.RandomRotation(30.0), (floats(3, 4, 5, 2),)),
    "RandomNoise": (lambda: nn.RandomNoise(0.5), (floats(3, 4),)),
    "MixUp": (lambda: nn.MixUp(0.4), (floats(4, 3), floats(4, 2))),
    "CutMix": (lambda: nn.CutMix(), (floats(4, 6, 5, 2), floats(4, 2))),
    "BatchNorm": (lambda: nn.BatchNorm(3), (floats(6, 3),)),
    "BatchNorm, first": (lambda: nn.BatchNorm(3, axis=1, affine=False), (floats(4, 3, 5, 2),)),
    "LayerNorm": (lambda: nn.LayerNorm((3, 4)), (floats(2, 3, 4),)),
    "RMSNorm": (lambda: nn.RMSNorm(4), (floats(2, 3, 4),)),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), (floats(2, 3, 4),)),
    "MultiHeadAttention": (lambda: nn.MultiHeadAttention(8, 2), (floats(2, 5, 8),)),
    "MultiHeadAttention, keys": (
        lambda: nn.MultiHeadAttention(8, 4, num_kv_heads=2, kdim=6, vdim=3, bias=False),
        (floats(2, 5, 8), floats(2, 7, 6), floats(2, 7, 3)),
    ),
    "FeedForward": (lambda: nn.FeedForward(4, 8, activation="gelu"), (floats(2, 3, 4),)),
    "TransformerEncoderLayer": (lambda: nn.TransformerEncoderLayer(8, 2, 16), (floats(2, 5, 8),)),
    "TransformerDecoderLayer": (lambda: nn.TransformerDecoderLayer(8, 2, 16), (floats(2, 5, 8), floats(2, 3, 8))),
    "TransformerEncoder": (lambda: nn.TransformerEncoder(2, 8, 2, 16, norm_first=True), (floats(2, 5, 8),)),
    "TransformerDecoder": (lambda: nn.TransformerDecoder(2, 8, 2, 16, norm_first=True), (floats(2, 5, 8),) * 2),
    "MaxPool": (lambda: nn.MaxPool(2), (floats(2, 6, 3),)),
    "MaxPool1d": (lambda: nn.MaxPool1d(3, 2, "same"), (floats(2, 6, 3),)),
    "MaxPool2d": (lambda: nn.MaxPool2d((2, 3)), (floats(2, 6, 7, 3),)),
    "MaxPool3d": (lambda: nn.MaxPool3d(2), (floats(1, 4, 4, 4, 2),)),
    "AveragePool": (lambda: nn.AveragePool(2), (floats(2, 6, 3),)),
    "AveragePool1d": (lambda: nn.AveragePool1d(3, 2, "same"), (floats(2, 6, 3),)),
    "AveragePool2d": (lambda: nn.AveragePool2d(2, data_format="channels_first"), (floats(2, 3, 6, 7),)),
    "AveragePool3d": (lambda: nn.AveragePool3d(2), (floats(1, 4, 4, 4, 2),)),
    "AdaptiveMaxPool": (lambda: nn.AdaptiveMaxPool((2, 3)), (floats(2, 5, 7, 3),)),
    "AdaptiveAveragePool": (lambda: nn.AdaptiveAveragePool(3), (floats(2, 5, 7, 3),)),
    "GlobalMaxPool": (lambda: nn.GlobalMaxPool(), (floats(2, 5, 7, 3),)),
    "GlobalAveragePool": (lambda: nn.GlobalAveragePool(data_format="channels_first"), (floats(2, 3, 5),)),
    "Flatten": (lambda: nn.Flatten(), (floats(2, 3, 4),)),
    "Reshape": (lambda: nn.Reshape((4, 3)), (floats(2, 12),)),
    "Identity": (lambda: nn.Identity(), (floats(2, 3),)),
    "Upsample": (lambda: nn.Upsample((2, 3), "bilinear"), (floats(2, 3, 4, 1),)),
    "Dropout": (lambda: nn.Dropout(0.25), (floats(20, 5),)),
    "Lambda": (lambda: nn.Lambda(ops.square), (floats(2, 3),)),
    "RNNCell": (lambda: nn.RNNCell(3, 4), (floats(2, 3),)),
    "LSTMCell": (lambda: nn.LSTMCell(3, 4), (floats(2, 3),)),
    "GRUCell": (lambda: nn.GRUCell(3, 4, bias=False), (floats(2, 3),)),
    "RNN": (lambda: nn.RNN(3, 4, 2, activation="relu"), (floats(2, 5, 3),)),
    "LSTM": (lambda: nn.LSTM(3, 4, 2, bidirectional=True, dropout=0.5), (floats(2, 5, 3),)),
    "GRU": (lambda: nn.GRU(3, 4, batch_first=False), (floats(5, 2, 3),)),
    "LTCCell": (lambda: nn.LTCCell(3, 4), (floats(2, 3),)),
    "LTC": (lambda: nn.LTC(3, NCP(4, 3, 2, 2, 2, 3, 2)), (floats(2, 5, 3),)),
    "CfCCell": (lambda: nn.CfCCell(3, 4, backbone_layers=2), (floats(2, 3),)),
    "CfCCell, pure": (lambda: nn.CfCCell(3, 4, mode="pure", backbone_layers=0), (floats(2, 3),)),
    "CfC": (lambda: nn.CfC(3, 4, proj_size=2, backbone_dropout=0.1), (floats(2, 5, 3),)),
    "CfC, wired": (lambda: nn.CfC(3, AutoNCP(9, 2), mode="no_gate"), (floats(2, 5, 3),)),
    "CfC, connected": (lambda: nn.CfC(3, FullyConnected(4, 2), return_sequences=False), (floats(2, 5, 3),)),
    "CfC, random": (lambda: nn.CfC(3, Random(4, 2)), (floats(2, 5, 3),)),
    "PReLU": (lambda: nn.PReLU(3), (floats(2, 3),)),
    "Sequential": (lambda: nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)), (floats(2, 3),)),
    "RMSNorm, offset": (lambda: nn.RMSNorm(4, offset=1.0), (floats(2, 3, 4),)),
    "RotaryEmbedding": (lambda: nn.RotaryEmbedding(4, scaling=_SCALING), (np.arange(3),)),
    "CausalSelfAttention": (lambda: nn.CausalSelfAttention(8, 2), (floats(2, 5, 8),)),
    "CausalSelfAttention, grouped": (
        lambda: nn.CausalSelfAttention(
            6, 4, num_kv_heads=2, head_dim=4, bias=False, window=3, softcap=2.0, norm_epsilon=1e-6
        ),
        (floats(2, 5, 6),),
    ),
    "GatedFeedForward": (lambda: nn.GatedFeedForward(4, 6), (floats(2, 3, 4),)),
}

# Activations are made from functions; what they need to be called with is theirs.
_OPTIONS: dict[str, tuple[Any, ...]] = {"Threshold": (0.1, 5.0)}
for _name in nn.modules.activations.CLASSES:
    CASES.setdefault(_name, (lambda name=_name: getattr(nn, name)(*_OPTIONS.get(name, ())), (floats(3, 4),)))
