"""Inputs for losses: every reduction and option, logits and probabilities that are rounded away, and special values."""

from __future__ import annotations

from typing import Any

import numpy as np

from ember_ml.testing.samples import Call, call

NAN, INF = float("nan"), float("inf")

RNG = np.random.default_rng(5)
TRUE = np.asarray([[1.0, -2.0, 0.5], [0.0, 0.25, 3.0]], np.float32)
GUESS = np.asarray([[0.5, -2.0, 4.0], [-1.0, 0.5, 2.0]], np.float32)
LARGE = np.asarray([[1e4, -1e4, 30.0], [-30.0, 0.0, 1e-4]], np.float32)
NUMBER = np.asarray(0.5, np.float32)
NOTHING = np.zeros((0, 3), np.float32)
LABELS = np.asarray([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]], np.float32)
CHANCES = np.asarray([[0.5, 0.25, 0.875], [0.125, 0.0, 1.0]], np.float32)
SHARES = np.asarray([[0.25, 0.5, 0.25], [0.0, 1.0, 0.0]], np.float32)
CUBE = (np.arange(24, dtype=np.float32).reshape(2, 3, 4) * 7 % 11 - 4) / 4
CUBE_SHARES = (np.arange(24, dtype=np.float32).reshape(2, 3, 4) % 5 + 1) / 16


def double(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64)


def half(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float16)


def each(first: np.ndarray, second: np.ndarray, **options: Any) -> list[Call]:
    """A loss by every reduction, and in other dtypes."""
    return [
        call(first, second, **options),
        call(first, second, reduction="sum", **options),
        call(first, second, reduction="none", **options),
        call(double(first), double(second), reduction="none", **options),
        call(half(first), half(second), **options),
        call(half(first), half(second), reduction="none", **options),
    ]


ERRORS = [
    *each(TRUE, GUESS),
    *each(TRUE, LARGE),
    call(TRUE, NUMBER),
    call(NUMBER, GUESS, reduction="none"),
    call(NUMBER, NUMBER),
    call(NOTHING, NOTHING),
    call(NOTHING, NOTHING, reduction="sum"),
    call(np.asarray([NAN, INF, 1.0], np.float32), np.asarray([1.0, 2.0, -INF], np.float32), reduction="none"),
]

BINARY = [
    *each(LABELS, CHANCES),
    *each(LABELS, LARGE, from_logits=True),
    *each(SHARES, GUESS, from_logits=True),
    *each(SHARES, CHANCES),
    call(NUMBER, CHANCES),
    call(NOTHING, NOTHING, reduction="none"),
]

CATEGORICAL = [
    *each(SHARES, np.clip(CHANCES, 0.125, 1)),
    *each(SHARES, CHANCES),
    *each(LABELS, LARGE, from_logits=True),
    *each(SHARES, GUESS, from_logits=True, label_smoothing=0.25),
    *each(CUBE_SHARES, CUBE, from_logits=True, axis=1),
    *each(CUBE_SHARES, CUBE_SHARES, axis=0),
    call(SHARES, np.asarray([[0.5, 1.0, -INF], [-INF, 2.0, 1.0]], np.float32), from_logits=True, reduction="none"),
    call(NOTHING, NOTHING, from_logits=True, reduction="none"),
]

CLASSES = np.asarray([2, 0])
CUBE_CLASSES = np.asarray([[2, 0, 1, 1], [0, 0, 2, 1]])


def sparse(classes: np.ndarray, guess: np.ndarray, **options: Any) -> list[Call]:
    return [
        call(classes, guess, **options),
        call(classes.astype(np.int32), guess, reduction="sum", **options),
        call(classes, guess, reduction="none", **options),
        call(classes, double(guess), reduction="none", **options),
        call(classes, half(guess), **options),
    ]


STATES, VOCABULARY, SHIFT = (RNG.normal(size=shape).astype(np.float32) for shape in ((2, 4, 5), (5, 3), (3,)))


def sparse_chunks(classes: np.ndarray, *tensors: np.ndarray, **options: Any) -> list[Call]:
    return [
        call(classes, *(change(x) for x in tensors), reduction=reduction, **options)
        for reduction in ("mean", "sum", "none")
        for change in (np.asarray, double, half)
    ]


ACOUSTICS = RNG.normal(size=(3, 7, 4)).astype(np.float32)
TARGETS = np.asarray([[1, 2, 2], [3, 1, -5], [1, 0, 99]])
LENGTHS, TIMES = np.asarray([3, 2, 1]), np.asarray([7, 5, 3])


def spelling(**options: Any) -> list[Call]:
    return [
        call(TARGETS, ACOUSTICS, LENGTHS, TIMES, **options),
        call(TARGETS, double(ACOUSTICS), LENGTHS, TIMES, **options),
        call(TARGETS, ACOUSTICS * 50, LENGTHS, TIMES, **options),
        call(TARGETS, half(ACOUSTICS), LENGTHS, TIMES, **options),
    ]


CALLS = {
    "mean_squared_error": ERRORS,
    "mean_absolute_error": ERRORS,
    "huber_loss": [*ERRORS, *each(TRUE, GUESS, delta=0.5), *each(TRUE, LARGE, delta=3.0)],
    "log_cosh_loss": [*ERRORS, call(TRUE, TRUE + 1e-3, reduction="none")],
    "binary_crossentropy": [
        *BINARY,
        *each(LABELS, GUESS, from_logits=True, label_smoothing=0.25),
        call(LABELS, CHANCES, label_smoothing=1.0),
    ],
    "categorical_crossentropy": CATEGORICAL,
    "sparse_categorical_crossentropy": [
        *sparse(CLASSES, np.clip(CHANCES, 0.125, 1)),
        *sparse(CLASSES, CHANCES),
        *sparse(CLASSES, LARGE, from_logits=True),
        *sparse(CLASSES, GUESS, from_logits=True, label_smoothing=0.25),
        *sparse(CUBE_CLASSES, CUBE, from_logits=True, axis=1),
        call(np.asarray(1), GUESS[0], from_logits=True),
        call(np.zeros((0,), np.int64), NOTHING, from_logits=True, reduction="none"),
    ],
    "linear_crossentropy": [
        call(CUBE_CLASSES, STATES, VOCABULARY, SHIFT),
        call(CUBE_CLASSES, STATES, VOCABULARY),
        *sparse_chunks(CUBE_CLASSES, STATES, VOCABULARY, SHIFT, chunk=3),
        *sparse_chunks(CUBE_CLASSES, STATES, VOCABULARY, chunk=None, label_smoothing=0.25),
        call(CUBE_CLASSES, STATES, VOCABULARY, SHIFT, chunk=1, label_smoothing=1.0),
        call(CUBE_CLASSES, STATES * 1e4, VOCABULARY, SHIFT, chunk=8),
        call(np.asarray(1), STATES[0, 0], VOCABULARY, SHIFT),
        call(CUBE_CLASSES[:0], STATES[:0], VOCABULARY, SHIFT, reduction="none"),
        call(CUBE_CLASSES[:0], STATES[:0], VOCABULARY, reduction="sum"),
    ],
    "kl_divergence": [
        *each(SHARES, CHANCES),
        *each(CUBE_SHARES, CUBE_SHARES[::-1], axis=1),
        call(np.asarray(0.5, np.float32), np.asarray(0.25, np.float32)),
    ],
    "hinge_loss": [*each(LABELS * 2 - 1, GUESS), *each(LABELS, GUESS), *each(LABELS, LARGE)],
    "cosine_similarity_loss": [
        *each(TRUE, GUESS),
        *each(CUBE, CUBE[::-1], axis=1),
        call(TRUE, TRUE * 0),
        call(TRUE, -TRUE, reduction="none"),
        call(np.asarray(2.0, np.float32), np.asarray(-0.5, np.float32)),
    ],
    "triplet_loss": [
        *(
            call(change(TRUE), change(GUESS), change(GUESS[::-1]), **options)
            for change in (np.asarray, double, half)
            for options in (
                {},
                {"reduction": "none"},
                {"reduction": "sum", "margin": 0.25},
                {"p": 1, "reduction": "none"},
                {"p": 3.0, "margin": 9.0},
                {"p": INF, "axis": 0, "reduction": "none"},
            )
        ),
        call(TRUE, TRUE, TRUE),
    ],
    "focal_loss": [
        *BINARY,
        *each(LABELS, GUESS, from_logits=True, alpha=None, gamma=1.5),
        *each(LABELS, CHANCES, alpha=0.75, gamma=0.0),
    ],
    "ctc_loss": [
        *spelling(),
        *spelling(reduction="none"),
        *spelling(reduction="sum"),
        *spelling(mask_index=3, reduction="none"),
        call(TARGETS, ACOUSTICS, np.asarray([3, 0, 1]), np.asarray([2, 7, 1]), reduction="none"),
        call(np.zeros((3, 0), np.int64), ACOUSTICS, np.zeros(3, np.int64), TIMES, reduction="none"),
        *(call(TARGETS[:0], ACOUSTICS[:0], LENGTHS[:0], TIMES[:0], reduction=how) for how in ("mean", "none")),
    ],
}

PROBABILITIES = [*(name for name in CALLS if name.endswith("crossentropy")), "kl_divergence", "focal_loss"]
DOMAIN = dict.fromkeys(PROBABILITIES, (0.125, 0.875))
