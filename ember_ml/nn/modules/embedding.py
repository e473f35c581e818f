"""Embeddings: vectors for indices and for positions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ember_ml import ops
from ember_ml.nn.initializers import Initializer, initialized
from ember_ml.nn.modules.checks import check_sizes
from ember_ml.nn.modules.convolution import Conv2d
from ember_ml.nn.modules.module import Module
from ember_ml.nn.modules.slots import Buffer, Parameter
from ember_ml.types import DTypeLike, Tensor


class Embedding(Module):
    """Rows of a learned table, one for each index.

    The weight has the shape (num_embeddings, embedding_dim).

    Args:
        num_embeddings: number of indices.
        embedding_dim: length of each row.
        weight_init: initializer of the table, by name, as a function or as a constant value.

    >>> layer = Embedding(10, 4)
    >>> tuple(layer([[1, 2, 3]]).shape)
    (1, 3, 4)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        *,
        weight_init: str | float | Initializer = "standard_normal",
        dtype: DTypeLike | None = None,
    ) -> None:
        check_sizes(self, num_embeddings=num_embeddings, embedding_dim=embedding_dim)
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.weight: Any = Parameter(
            initialized(weight_init, (num_embeddings, embedding_dim), dtype, f"{type(self).__name__}: weight_init")
        )

    def forward(self, indices: Any) -> Tensor:
        return ops.embedding_lookup(self.weight, indices)

    def attend(self, x: Any) -> Tensor:
        """``x @ weight.T``: a score for each index, for output layers that share the table.

        >>> tuple(Embedding(10, 4).attend(ops.ones((2, 4))).shape)
        (2, 10)
        """
        return ops.matmul(x, ops.matrix_transpose(self.weight))


class PositionalEncoding(Module):
    """``x`` plus sines and cosines of the position along its second-to-last axis (Vaswani et al., 2017).

    At position ``p``, ``sin(p / base ** (2 * i / dim))`` is added to channel ``2 * i``, and the cosine to the next one.

    Args:
        dim: number of channels.
        max_length: greatest length of a sequence.

    >>> PositionalEncoding(4, 8)([[0.0, 0.0, 0.0, 0.0]]).tolist()
    [[0.0, 1.0, 0.0, 1.0]]
    """

    def __init__(
        self, dim: int, max_length: int = 1024, *, base: float = 10000.0, dtype: DTypeLike | None = None
    ) -> None:
        check_sizes(self, dim=dim, max_length=max_length)
        self.dim, self.max_length, self.base = dim, max_length, base
        rows = [
            [(math.cos if i % 2 else math.sin)(p / base ** ((i - i % 2) / dim)) for i in range(dim)]
            for p in range(max_length)
        ]
        self.table: Any = Buffer(ops.asarray(rows, dtype=dtype), persistent=False)

    def forward(self, x: Any) -> Tensor:
        return ops.add(x, _first_rows(self, self.table, x))


class PositionalEmbedding(Module):
    """``x`` plus a learned vector for each position along its second-to-last axis.

    The weight has the shape (max_length, dim).

    Args:
        dim: number of channels.
        max_length: greatest length of a sequence.
        weight_init: initializer of the vectors, by name, as a function or as a constant value.

    >>> tuple(PositionalEmbedding(4, 8)(ops.ones((2, 5, 4))).shape)
    (2, 5, 4)
    """

    def __init__(
        self,
        dim: int,
        max_length: int = 1024,
        *,
        weight_init: str | float | Initializer = "normal",
        dtype: DTypeLike | None = None,
    ) -> None:
        check_sizes(self, dim=dim, max_length=max_length)
        self.dim, self.max_length = dim, max_length
        self.weight: Any = Parameter(
            initialized(weight_init, (max_length, dim), dtype, f"{type(self).__name__}: weight_init")
        )

    def forward(self, x: Any) -> Tensor:
        return ops.add(x, _first_rows(self, self.weight, x))


class PatchEmbedding(Module):
    """Learned projections of the patches of images, from left to right and from top to bottom.

    Images have the axes (batch, height, width, channels), the result (batch, patches, features). Rows and columns that
    do not fill a patch are left out.

    Args:
        in_channels: number of channels of the images.
        embed_dim: number of features of a patch.
        patch_size: height and width of a patch, or one number for both.
        bias: whether to learn a bias.

    >>> tuple(PatchEmbedding(3, 8, 4)(ops.ones((2, 12, 16, 3))).shape)
    (2, 12, 8)
    """

    def __init__(
        self,
        in_channels: int,
        embed_dim: int,
        patch_size: int | Sequence[int],
        bias: bool = True,
        *,
        data_format: str = "channels_last",
        dtype: DTypeLike | None = None,
    ) -> None:
        check_sizes(self, in_channels=in_channels, embed_dim=embed_dim)
        self.in_channels, self.embed_dim, self.patch_size = in_channels, embed_dim, patch_size
        self.data_format = data_format
        self.projection = Conv2d(
            in_channels, embed_dim, patch_size, patch_size, bias=bias, data_format=data_format, dtype=dtype
        )

    def forward(self, images: Any) -> Tensor:
        x = self.projection(images)
        if self.data_format == "channels_first":
            x = ops.permute_dims(x, (0, 2, 3, 1))
        batch, height, width, features = x.shape
        return ops.reshape(x, (batch, height * width, features))


def _first_rows(layer: Any, table: Any, x: Any) -> Any:
    name, limit = type(layer).__name__, layer.max_length
    if len(ops.shape(x)) < 2:
        raise ValueError(f"{name}: x must have at least 2 axes, (length, features), got shape {list(ops.shape(x))}")
    length, features = ops.shape(x)[-2:]
    if length > limit:
        raise ValueError(f"{name}: x must have a length of at most {limit}, the number of positions, got {length}")
    if features != table.shape[-1]:
        raise ValueError(f"{name}: x must have {table.shape[-1]} features, got {features}")
    return table[:length]
