"""Inputs for the primitives of neural networks: one to three axes, both layouts, every padding, groups, dilation."""

from __future__ import annotations

from typing import Any

import numpy as np

from ember_ml.testing.samples import Call, call

INF, NAN = float("inf"), float("nan")
RNG = np.random.default_rng(11)


def drawn(*shape: int, dtype: str = "float32") -> np.ndarray:
    """Multiples of 1/8 between -3 and 3, which every float dtype holds."""
    return (np.round(RNG.uniform(-3, 3, shape) * 8) / 8).astype(dtype)


def first(x: np.ndarray) -> np.ndarray:
    """The same with channels first."""
    return np.ascontiguousarray(np.moveaxis(x, -1, 1))


LINE, PLANE, SOLID = drawn(2, 7, 4), drawn(2, 6, 5, 4), drawn(1, 4, 5, 4, 2)
ROWS, TILES, BRICKS = drawn(3, 4, 6), drawn(3, 2, 4, 6), drawn(2, 3, 2, 2, 4)
GROUPED_ROWS, GROUPED_TILES, GROUPED_BRICKS = drawn(3, 2, 6), drawn(3, 2, 2, 6), drawn(2, 3, 2, 1, 4)

PADDINGS: list[Any] = ["same", "valid", 1, (1, 0), ((1, 2), (0, 1))]

CONVOLUTIONS = [
    call(PLANE, TILES),
    call(LINE, ROWS),
    call(SOLID, BRICKS),
    *(call(PLANE, TILES, padding=padding) for padding in PADDINGS),
    *(call(PLANE, TILES, strides=(2, 3), padding=padding) for padding in PADDINGS),
    *(call(PLANE, TILES, 2, padding, "channels_last", (2, 1)) for padding in PADDINGS),
    call(first(PLANE), TILES, (1, 2), "same", "channels_first"),
    call(first(PLANE), GROUPED_TILES, 1, 1, "channels_first", 2, 2),
    call(first(LINE), ROWS, 2, "same", "channels_first"),
    call(first(SOLID), BRICKS, 2, "same", "channels_first"),
    call(LINE, GROUPED_ROWS, groups=2),
    call(LINE, drawn(3, 1, 8), padding="same", groups=4),
    call(PLANE, GROUPED_TILES, 2, "same", groups=2),
    call(SOLID, GROUPED_BRICKS, padding="same", groups=2),
    call(SOLID, GROUPED_BRICKS.astype(np.float64), padding=1, groups=2),
    call(PLANE, drawn(1, 1, 4, 3), strides=2),
    call(PLANE.astype(np.float64), TILES, 2, "same", groups=1),
    call(PLANE[:0], TILES),
    call(PLANE[:0], GROUPED_TILES, groups=2),
    call(PLANE[:0], drawn(2, 2, 1, 4), groups=4),
    call(PLANE[:0].astype(np.float64), GROUPED_TILES, groups=2),
]

TRANSPOSED = [
    call(PLANE, np.swapaxes(TILES, -1, -2)),
    call(LINE, drawn(3, 6, 4)),
    call(SOLID, drawn(2, 3, 2, 5, 2), 2),
    *(call(PLANE, drawn(3, 4, 6, 4), 2, padding) for padding in ("same", "valid", 1, (2, 0), ((0, 1), (2, 1)))),
    *(call(PLANE, drawn(3, 4, 6, 4), (3, 2), padding, 1) for padding in ("same", "valid", 1, (2, 0))),
    call(PLANE, drawn(2, 2, 6, 4), 3, "same"),
    call(PLANE[:0], drawn(2, 2, 6, 4), 2),
    call(PLANE[:0].astype(np.float64), drawn(2, 2, 3, 4), 2, groups=2),
    call(PLANE, drawn(3, 2, 6, 4), (1, 2), 1, (0, 1), "channels_last", (2, 3)),
    call(first(PLANE), drawn(3, 2, 6, 4), 2, "same", None, "channels_first"),
    call(PLANE, drawn(3, 2, 3, 4), 2, 1, 1, "channels_last", 1, 2),
    call(first(LINE), drawn(3, 3, 4), 2, "valid", 0, "channels_first", 1, 2),
    call(SOLID, drawn(2, 3, 2, 2, 2), 2, "same", None, "channels_last", 1, 2),
    call(PLANE.astype(np.float64), drawn(3, 2, 3, 4), 2, "same", 1, "channels_last", 2, 2),
]


def recurrent(gates: int, states: int) -> list[Call]:
    """Layers with and without biases and first states, in both directions, time first and second."""
    x, (ih, hh) = drawn(2, 5, 3) / 4, (drawn(n, 2 * gates) / 4 for n in (3, 2))
    a, b, *starts = (*(drawn(2 * gates) / 4 for _ in range(2)), *(drawn(2, 2) / 4 for _ in range(states)))
    none = [None] * states
    return [
        call(x, ih, hh),
        call(x, ih, hh, a, b, *starts),
        call(x, ih, hh, a, b, *none, 0),
        call(x, ih, hh, None, b, *none, 1, True),
        call(x, ih, hh, a, None, *starts, 1, True),
        call(drawn(4, 2, 3), ih, hh, a, b, *starts, axis=0, reverse=True),
        call(x[:, :1].astype(np.float64), ih, hh, a, b, *starts),
        call(x[:0], ih, hh, a, b),
        call(np.where(x > 0.6, NAN, x), ih, hh, a, b),
    ]


def pooled(*more: Call) -> list[Call]:
    """Pools over all kinds of windows."""
    return [
        call(PLANE, 2),
        call(LINE, 3),
        call(SOLID, 2),
        call(PLANE, (3, 2), 1),
        call(PLANE, (2, 3), (2, 1), "same"),
        call(PLANE, 3, 2, 1),
        call(PLANE, 3, None, ((2, 0), (1, 2))),
        call(PLANE, 4, 3, "same"),
        call(LINE, 3, 2, 2),
        call(first(PLANE), 3, 2, "same", "channels_first"),
        call(first(LINE), 2, None, "same", "channels_first"),
        call(first(SOLID), (2, 3, 1), 2, "same", "channels_first"),
        call(SOLID.astype(np.float64), 2, 1, 1),
        call(PLANE[:0], 2),
        *more,
    ]


def adapted(*more: Call) -> list[Call]:
    """Pools to sizes that divide the axes, and that do not."""
    return [
        call(PLANE, (3, 2)),
        call(PLANE, 1),
        call(PLANE, (6, 5)),
        call(PLANE, 8),
        call(LINE, 3),
        call(SOLID, (2, 3, 4)),
        call(first(PLANE), (4, 3), "channels_first"),
        call(first(LINE), 2, "channels_first"),
        call(first(SOLID), 3, "channels_first"),
        *more,
    ]


HOLED = np.where(np.arange(30).reshape(1, 6, 5, 1) % 11 == 4, np.float32(NAN), drawn(1, 6, 5, 1))
ENDLESS = np.where(np.arange(30).reshape(1, 6, 5, 1) % 7 == 3, np.float32(-INF), drawn(1, 6, 5, 1))
WHOLE = np.asarray(RNG.integers(-90, 90, (1, 5, 5, 2)), np.int32)

MEAN, VARIANCE, SCALE, OFFSET = drawn(4), np.abs(drawn(4)) + 1, drawn(4), drawn(4)

QUERY, KEY, VALUE = drawn(2, 3, 4, 8), drawn(2, 5, 4, 8), drawn(2, 5, 4, 8)
VISIBLE = RNG.random((2, 4, 3, 5)) < 0.6
VISIBLE[..., 0] = True
BLIND = VISIBLE.copy()
BLIND[0, 1, 2] = False

ATTENTION = [
    call(QUERY, KEY, VALUE),
    call(QUERY, KEY, VALUE, VISIBLE),
    call(QUERY, KEY, VALUE, BLIND),
    call(QUERY, KEY, VALUE, BLIND, is_causal=True),
    call(QUERY, KEY, VALUE, VISIBLE[:1, :1]),
    call(QUERY, KEY, VALUE, None, drawn(1, 4, 3, 5)),
    call(QUERY, KEY, VALUE, VISIBLE, drawn(2, 1, 3, 5), 0.25),
    call(QUERY, KEY, VALUE, BLIND, drawn(2, 1, 3, 5)),
    call(QUERY, KEY, VALUE, None, drawn(1, 4, 3, 5), None, True),
    call(QUERY, KEY, VALUE, is_causal=True),
    call(KEY, KEY, VALUE, is_causal=True),
    call(KEY, QUERY, QUERY, is_causal=True),
    call(QUERY, KEY[:, :, :2], VALUE[:, :, :2]),
    call(QUERY, KEY[:, :, :1], VALUE[:, :, :1], VISIBLE),
    call(QUERY, KEY, VALUE[..., :6]),
    call(*(x.astype(np.float64) for x in (QUERY, KEY, VALUE)), BLIND, is_causal=True),
    call(*(x.astype(np.float64) for x in (QUERY, KEY[:, :, :2], VALUE[:, :, :2])), None, drawn(3, 5)),
    call(*(x.astype(np.float64) for x in (KEY, KEY, VALUE)), is_causal=True),
    call(QUERY * 100, KEY * 100, VALUE),
    call(QUERY, KEY, VALUE, np.asarray(True)),
    call(QUERY, KEY, VALUE, np.asarray(False), is_causal=True),
    call(QUERY, KEY, VALUE, np.arange(5) < 2),
    call(QUERY, KEY, VALUE, None, drawn(5), None, True),
    call(KEY, KEY, VALUE, scale=0.0, is_causal=True),
    call(KEY, KEY, VALUE, scale=-1.0, is_causal=True),
    call(QUERY, KEY, VALUE, is_causal=True, causal_alignment="bottom_right"),
    call(QUERY[:, :1], KEY, VALUE, is_causal=True, causal_alignment="bottom_right"),
    call(KEY, KEY, VALUE, is_causal=True, causal_alignment="bottom_right"),
    call(KEY, QUERY, QUERY, is_causal=True, causal_alignment="bottom_right"),
    call(QUERY, KEY, VALUE, BLIND, drawn(2, 1, 3, 5), is_causal=True, causal_alignment="bottom_right"),
    call(*(x.astype(np.float64) for x in (QUERY, KEY, VALUE)), is_causal=True, causal_alignment="bottom_right"),
]

PICTURE = drawn(2, 5, 4, 3)
SIZES = [(5, 4), (10, 8), (3, 2), (7, 9), (1, 1), (2, 11)]

CALLS: dict[str, list[Call]] = {
    "linear": [
        call(LINE, drawn(4, 3), drawn(3)),
        call(LINE, drawn(4, 3)),
        call(LINE[0], drawn(4, 3), drawn(3)),
        call(LINE[0, 0], drawn(4, 3), drawn(3)),
        call(PLANE, drawn(3, 4).T, bias=drawn(3)),
        call(np.swapaxes(LINE, 0, 1), drawn(4, 3), drawn(3)),
        call(LINE[:0], drawn(4, 3), drawn(3)),
        call(LINE[..., :0], drawn(0, 3), drawn(3)),
        call(LINE, drawn(4, 0), drawn(0)),
        call(np.where(LINE > 2.5, NAN, LINE), drawn(4, 3), drawn(3)),
        call(LINE.astype(np.float64), drawn(4, 3), drawn(3)),
        call(LINE.astype(np.int64), drawn(4, 3).astype(np.int64), drawn(3).astype(np.int64)),
        call(LINE + 1j, drawn(4, 3), drawn(3)),
    ],
    "conv": CONVOLUTIONS,
    "conv_transpose": TRANSPOSED,
    "depthwise_conv": [
        call(PLANE, drawn(3, 2, 4, 2)),
        call(LINE, drawn(3, 4, 1), 2, "same"),
        call(SOLID, drawn(2, 2, 2, 2, 3), 1, 1),
        call(first(PLANE), drawn(3, 2, 4, 1), 1, "same", "channels_first", 2),
    ],
    "separable_conv": [
        call(PLANE, drawn(3, 2, 4, 2), drawn(1, 1, 8, 3)),
        call(LINE, drawn(3, 4, 1), drawn(1, 4, 5), 2, "same"),
        call(first(PLANE), drawn(3, 2, 4, 1), drawn(1, 1, 4, 2), 1, "same", "channels_first", 2),
    ],
    "max_pool": pooled(
        call(HOLED, 2),
        call(ENDLESS, 3, 1, "same"),
        call(-np.abs(PLANE) - 1, 3, 2, "same"),
        call(PLANE[..., :0], 2),
        call(WHOLE, 2),
        call(WHOLE, 3, 2, "same"),
        call(WHOLE.astype(np.uint8), 3, 2, 1),
    ),
    "average_pool": pooled(
        call(HOLED, 2),
        call(ENDLESS, 3, 1, "same"),
        call(np.full((1, 8, 8, 1), 6e4, np.float16), 4),
        call(PLANE[..., :0], 3, 2, "same"),
    ),
    "adaptive_average_pool": adapted(call(ENDLESS, (4, 3)), call(HOLED, (4, 3)), call(PLANE[..., :0], 2)),
    "adaptive_max_pool": adapted(call(ENDLESS, (4, 3)), call(HOLED, (4, 3)), call(WHOLE, 3), call(PLANE[..., :0], 2)),
    "batch_normalization": [
        call(PLANE, MEAN, VARIANCE),
        call(PLANE, MEAN, VARIANCE, -1, OFFSET, SCALE),
        call(first(PLANE), MEAN, VARIANCE, 1, OFFSET, SCALE, 1e-3),
        call(PLANE, MEAN, VARIANCE, 3, None, SCALE),
        call(LINE[0, :4, 0], MEAN, VARIANCE, 0, OFFSET),
        call(PLANE, MEAN, VARIANCE, -1, np.asarray(2.0, np.float32), np.asarray(0.5, np.float32)),
    ],
    "batch_standardization": [
        call(PLANE, MEAN, VARIANCE),
        call(PLANE, MEAN, VARIANCE, -1, OFFSET, SCALE),
        call(first(PLANE), MEAN, VARIANCE, 1, OFFSET, SCALE, 1e-3, 0.5),
        call(PLANE, MEAN, VARIANCE, 3, None, SCALE),
        call(first(LINE), MEAN, VARIANCE, 1, OFFSET, momentum=1.0),
        call(LINE, MEAN, VARIANCE, 2, None, SCALE, momentum=0.0),
        call(drawn(4, 3, 2), MEAN, VARIANCE, 0, OFFSET, SCALE),
        call(LINE[0], MEAN, VARIANCE, 1, OFFSET, SCALE),
        call(LINE[0, :4, 0], MEAN, VARIANCE, 0, OFFSET),
        call(PLANE[:1, :1, :1], MEAN, VARIANCE, -1, OFFSET, SCALE),
        call(LINE[0].astype(np.float64), MEAN, VARIANCE, epsilon=1e-9),
        call(np.ones((2, 4), np.float32), MEAN, VARIANCE, epsilon=0.0),
        call(np.where(LINE > 2, NAN, LINE), MEAN, VARIANCE),
        call(LINE[:0], MEAN, VARIANCE, -1, OFFSET, SCALE),
    ],
    "layer_normalization": [
        call(PLANE, SCALE, OFFSET),
        call(PLANE),
        call(PLANE, None, OFFSET, 3),
        call(PLANE, SCALE, None, -1, 1e-2),
        call(PLANE, drawn(5, 4), drawn(5, 4), (-2, -1)),
        call(PLANE, drawn(6, 4), drawn(6, 4), (3, 1)),
        call(first(PLANE), SCALE, OFFSET, 1),
        call(PLANE, axis=None),
        call(PLANE[:0], SCALE, OFFSET),
        call(PLANE + 1000, SCALE, OFFSET),
        call(PLANE.astype(np.float64), SCALE, OFFSET),
        call(drawn(2, 4, dtype="float16") * np.float16(300), SCALE.astype(np.float16)),
    ],
    "rms_normalization": [
        call(PLANE, SCALE),
        call(PLANE),
        call(PLANE, SCALE, 3, 1e-2),
        call(PLANE, drawn(5, 4), (2, 3)),
        call(first(PLANE), SCALE, 1),
        call(PLANE, axis=None),
        call(PLANE[:0], SCALE),
        call(PLANE.astype(np.float64), SCALE),
        call(drawn(3, 4, dtype="float16") * np.float16(300)),
    ],
    "group_normalization": [
        call(PLANE, 2, SCALE, OFFSET),
        call(PLANE, 1),
        call(PLANE, 4, None, OFFSET),
        call(first(PLANE), 2, SCALE, OFFSET, 1, 1e-2),
        call(LINE, 2, SCALE, None, -1),
        call(drawn(3, 6), 3),
        call(PLANE.astype(np.float64), 2, SCALE, OFFSET),
    ],
    "dot_product_attention": ATTENTION,
    "lstm": recurrent(4, 2),
    "gru": recurrent(3, 1),
    "embedding_lookup": [
        call(drawn(5, 3), np.asarray([[0, 4], [2, 2]])),
        call(drawn(5, 3), 3),
        call(drawn(5), np.asarray([-1, 0])),
        call(drawn(5, 3), np.zeros((0, 2), np.int64)),
        call(WHOLE[0, :, :, 0], [1, 0]),
    ],
    "dropout": [
        call(PLANE, 0.4, key=7),
        call(PLANE, 0.5, training=False),
        call(PLANE, 0.0),
        call(PLANE, 1.0),
        call(PLANE, 0.9, key=(5, 6)),
        call(np.asarray(2.0, np.float32), 0.5, key=1),
        call(PLANE[:0], 0.5, key=1),
    ],
    "normalize": [
        call(PLANE),
        call(PLANE, 1),
        call(PLANE, (1, 2)),
        call(PLANE, None),
        call(PLANE, -1, 1),
        call(PLANE, -1, 3, 1e-3),
        call(PLANE, 0, INF),
        call(np.zeros((2, 3), np.float32)),
        call(np.full((2, 3), 200.0, np.float16)),
    ],
    "rotary_embedding": [
        call(drawn(2, 5, 3, 8)),
        call(drawn(2, 5, 3, 8), offset=11, base=500.0),
        call(drawn(2, 5, 3, 8), interleaved=True),
        call(drawn(2, 5, 3, 8), scale=0.25, offset=2),
        call(drawn(2, 5, 3, 8), np.asarray([3, 1, 4, 1, 5]), scale=0.5),
        call(drawn(2, 5, 2, 3, 8), axis=2),
        call(drawn(2, 5, 3, 8), np.asarray([3, 1, 4, 1, 5])),
        call(drawn(2, 5, 3, 8), np.asarray([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]]), offset=2, interleaved=True),
        call(drawn(2, 5, 6)),
        call(drawn(2, 3, 5, 6), axis=-2),
        call(drawn(2, 3, 5, 6), np.asarray([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]]), axis=2),
        call(drawn(5, 6), axis=0),
        call(drawn(2, 5, 3, 8, dtype="float64"), offset=1000),
    ],
    "resize": [
        call(PICTURE, (7, 3)),
        *(call(PICTURE, size, name) for size in SIZES for name in ("nearest", "bilinear", "bicubic")),
        *(call(PICTURE, size, name, True) for size in SIZES for name in ("bilinear", "bicubic")),
        call(first(PICTURE), (7, 3), "bicubic", False, "channels_first"),
        call(first(PICTURE), (7, 3), "nearest", False, "channels_first"),
        call(PICTURE[0], (7, 3), "bilinear", True),
        call(first(PICTURE)[0], (7, 3), "bilinear", False, "channels_first"),
        call(drawn(1, 16, 13, 1), (3, 5), "bicubic", True),
        call(drawn(1, 10, 12, 1), (3, 8), "nearest"),
        call(PICTURE.astype(np.float64), (7, 3), "bilinear"),
    ],
    "fold": [
        call(drawn(2, 3 * 6, 16), (5, 6), (2, 3)),
        call(drawn(2, 4, 9), (6, 6), 2, 1, 0, 2),
        call(drawn(2, 8, 30), (6, 5), 2, 2, 1),
        call(drawn(1, 6, 8), (4, 5), (3, 2), 1, (1, 0), (2, 1)),
        call(drawn(2, 4, 9, dtype="float64"), 6, 2, 1, 0, 2),
    ],
    "unfold": [
        call(drawn(2, 3, 5, 6), (2, 3)),
        call(drawn(2, 1, 6, 6), 2, 1, 0, 2),
        call(drawn(2, 2, 6, 5), 2, 2, 1),
        call(drawn(1, 2, 4, 5), (3, 2), 1, (1, 0), (2, 1)),
        call(drawn(2, 1, 6, 6, dtype="float64"), 2),
    ],
}
