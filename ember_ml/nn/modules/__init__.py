"""Modules: layers, and containers to build networks from them.

Options that many layers share: ``dtype`` is the dtype of the parameters, by default ``ops.get_default_dtype()``, and
``data_format`` is ``"channels_last"`` or ``"channels_first"``.
"""

from typing import TYPE_CHECKING

from ember_ml.nn.modules import activations as activations
from ember_ml.nn.modules.attention import FeedForward as FeedForward
from ember_ml.nn.modules.attention import MultiHeadAttention as MultiHeadAttention
from ember_ml.nn.modules.attention import TransformerDecoder as TransformerDecoder
from ember_ml.nn.modules.attention import TransformerDecoderLayer as TransformerDecoderLayer
from ember_ml.nn.modules.attention import TransformerEncoder as TransformerEncoder
from ember_ml.nn.modules.attention import TransformerEncoderLayer as TransformerEncoderLayer
from ember_ml.nn.modules.augmentation import CutMix as CutMix
from ember_ml.nn.modules.augmentation import MixUp as MixUp
from ember_ml.nn.modules.augmentation import RandomCrop as RandomCrop
from ember_ml.nn.modules.augmentation import RandomFlip as RandomFlip
from ember_ml.nn.modules.augmentation import RandomNoise as RandomNoise
from ember_ml.nn.modules.augmentation import RandomRotation as RandomRotation
from ember_ml.nn.modules.containers import Lambda as Lambda
from ember_ml.nn.modules.containers import ModuleDict as ModuleDict
from ember_ml.nn.modules.containers import ModuleList as ModuleList
from ember_ml.nn.modules.containers import Sequential as Sequential
from ember_ml.nn.modules.convolution import Conv1d as Conv1d
from ember_ml.nn.modules.convolution import Conv2d as Conv2d
from ember_ml.nn.modules.convolution import Conv3d as Conv3d
from ember_ml.nn.modules.convolution import ConvTranspose1d as ConvTranspose1d
from ember_ml.nn.modules.convolution import ConvTranspose2d as ConvTranspose2d
from ember_ml.nn.modules.convolution import ConvTranspose3d as ConvTranspose3d
from ember_ml.nn.modules.decoding import CausalSelfAttention as CausalSelfAttention
from ember_ml.nn.modules.decoding import GatedFeedForward as GatedFeedForward
from ember_ml.nn.modules.decoding import RotaryEmbedding as RotaryEmbedding
from ember_ml.nn.modules.embedding import Embedding as Embedding
from ember_ml.nn.modules.embedding import PatchEmbedding as PatchEmbedding
from ember_ml.nn.modules.embedding import PositionalEmbedding as PositionalEmbedding
from ember_ml.nn.modules.embedding import PositionalEncoding as PositionalEncoding
from ember_ml.nn.modules.layout import Tied as Tied
from ember_ml.nn.modules.linear import Dense as Dense
from ember_ml.nn.modules.linear import Linear as Linear
from ember_ml.nn.modules.liquid import LTC as LTC
from ember_ml.nn.modules.liquid import CfC as CfC
from ember_ml.nn.modules.liquid import CfCCell as CfCCell
from ember_ml.nn.modules.liquid import LTCCell as LTCCell
from ember_ml.nn.modules.lora import LoRA as LoRA
from ember_ml.nn.modules.module import Module as Module
from ember_ml.nn.modules.normalization import BatchNorm as BatchNorm
from ember_ml.nn.modules.normalization import GroupNorm as GroupNorm
from ember_ml.nn.modules.normalization import LayerNorm as LayerNorm
from ember_ml.nn.modules.normalization import RMSNorm as RMSNorm
from ember_ml.nn.modules.pooling import AdaptiveAveragePool as AdaptiveAveragePool
from ember_ml.nn.modules.pooling import AdaptiveMaxPool as AdaptiveMaxPool
from ember_ml.nn.modules.pooling import AveragePool as AveragePool
from ember_ml.nn.modules.pooling import AveragePool1d as AveragePool1d
from ember_ml.nn.modules.pooling import AveragePool2d as AveragePool2d
from ember_ml.nn.modules.pooling import AveragePool3d as AveragePool3d
from ember_ml.nn.modules.pooling import GlobalAveragePool as GlobalAveragePool
from ember_ml.nn.modules.pooling import GlobalMaxPool as GlobalMaxPool
from ember_ml.nn.modules.pooling import MaxPool as MaxPool
from ember_ml.nn.modules.pooling import MaxPool1d as MaxPool1d
from ember_ml.nn.modules.pooling import MaxPool2d as MaxPool2d
from ember_ml.nn.modules.pooling import MaxPool3d as MaxPool3d
from ember_ml.nn.modules.recurrent import GRU as GRU
from ember_ml.nn.modules.recurrent import LSTM as LSTM
from ember_ml.nn.modules.recurrent import RNN as RNN
from ember_ml.nn.modules.recurrent import GRUCell as GRUCell
from ember_ml.nn.modules.recurrent import LSTMCell as LSTMCell
from ember_ml.nn.modules.recurrent import RNNCell as RNNCell
from ember_ml.nn.modules.shape import Dropout as Dropout
from ember_ml.nn.modules.shape import Flatten as Flatten
from ember_ml.nn.modules.shape import Identity as Identity
from ember_ml.nn.modules.shape import Reshape as Reshape
from ember_ml.nn.modules.shape import Upsample as Upsample
from ember_ml.nn.modules.slots import Buffer as Buffer
from ember_ml.nn.modules.slots import Parameter as Parameter
from ember_ml.spellings import accept_in, unknown_name

# Names that Keras has for layers that are the same.
_POOLS = {
    "AveragePooling1D": AveragePool1d,
    "AveragePooling2D": AveragePool2d,
    "AveragePooling3D": AveragePool3d,
    "MaxPooling1D": MaxPool1d,
    "MaxPooling2D": MaxPool2d,
    "MaxPooling3D": MaxPool3d,
    **{f"GlobalAveragePooling{rank}D": GlobalAveragePool for rank in (1, 2, 3)},
    **{f"GlobalMaxPooling{rank}D": GlobalMaxPool for rank in (1, 2, 3)},
}

globals().update(activations.CLASSES, **_POOLS)
accept_in(vars(), __name__)

# Type checkers cannot read a computed __all__; without one they see every name.
if not TYPE_CHECKING:
    __all__ = [name for name, value in list(vars().items()) if isinstance(value, type)] + ["activations"]


def __getattr__(name: str) -> type[Module]:
    # The activation classes are created at run time; the return type declares them to type checkers.
    raise unknown_name(__name__, name, [key for key, value in globals().items() if isinstance(value, type)])
