"""Inputs for vectors and waves: lengths, axes, zero and constant waves, every window."""

from __future__ import annotations

import numpy as np

from ember_ml.testing.samples import call

ROWS = np.asarray([[3.0, 4.0, 0.0], [0.0, 0.0, 0.0], [-1.0, 2.0, 0.5]], np.float32)
OTHERS = np.asarray([[1.0, -2.0, 2.0], [3.0, 0.5, 1.0], [-1.0, 2.0, 0.5]], np.float32)
CUBE = (np.arange(24, dtype=np.float32).reshape(2, 3, 4) * 7 % 11 - 4) / 4
COMPLEX = (ROWS + 1j * OTHERS).astype(np.complex64)
HALF = np.asarray([300.0, 400.0, 0.0], np.float16)
NOTHING = np.zeros((0, 3), np.float32)
EMPTY = np.zeros((2, 0), np.float32)

TIMES = np.arange(12)
WAVE = np.round(np.sin(TIMES * 0.9) * 8).astype(np.float32) / 8
SECOND = np.round(np.cos(TIMES * 0.7) * 8 + TIMES % 3).astype(np.float32) / 8
WAVES = np.stack([WAVE, SECOND, WAVE[::-1], -WAVE])
ZERO, CONSTANT = np.zeros(12, np.float32), np.full(12, 0.1, np.float32)
DOUBLES = WAVE.astype(np.float64), SECOND.astype(np.float64)

PAIRS = [
    (WAVE, SECOND),
    (WAVE, WAVE),
    (WAVE, -WAVE),
    (WAVES, WAVE),
    (WAVES, WAVES[::-1].copy()),
    (WAVE, ZERO),
    (ZERO, ZERO),
    (CONSTANT, CONSTANT),
    (WAVE * np.float32(1e30), SECOND * np.float32(1e-30)),
    (WAVE[:7], SECOND[:7]),
    DOUBLES,
    (WAVE.astype(np.float16), SECOND.astype(np.float16)),
]

# Means, spectra and quotients of them are rounded one after the other, and each engine sums in its own order.
ROUNDED = 2e-4
TOLERANCE = {
    "compute_interference_strength": ROUNDED,
    "compute_phase_coherence": ROUNDED,
    "partial_interference": ROUNDED,
}

CALLS = {
    "normalize_vector": [
        call(ROWS),
        call(ROWS, 0),
        call(CUBE, axis=1),
        call(COMPLEX),
        call(HALF),
        call(NOTHING),
        call(EMPTY),
        call(ROWS, -1, 10.0),
        call(np.asarray(-3.0, np.float32)),
        call(ROWS.astype(np.float64)),
    ],
    "euclidean_distance": [
        call(ROWS, OTHERS),
        call(ROWS, OTHERS, axis=0),
        call(ROWS, OTHERS[0]),
        call(CUBE, CUBE[:1], 1),
        call(COMPLEX, OTHERS),
        call(np.asarray(1.0, np.float32), np.asarray(3.5, np.float32)),
        call(HALF, -HALF),
        call(NOTHING, NOTHING),
        call(EMPTY, EMPTY),
        call(ROWS.astype(np.float64), OTHERS),
    ],
    "cosine_similarity": [
        call(ROWS, OTHERS),
        call(ROWS, OTHERS, axis=0),
        call(ROWS, OTHERS[0]),
        call(CUBE, CUBE[:1], 1),
        call(np.asarray(1.0, np.float32), np.asarray(-3.5, np.float32)),
        call(HALF, -HALF),
        call(NOTHING, NOTHING),
        call(EMPTY, EMPTY),
        call(ROWS.astype(np.float64), OTHERS, eps=10.0),
    ],
    "compute_energy_stability": [
        call(WAVES, 3),
        *(call(wave, size) for wave in (WAVE, SECOND / 4, ZERO, CONSTANT) for size in (1, 2, 5, 12, 13)),
        call(WAVE),
        call(WAVES / 4, window_size=4, axis=1),
        call(WAVES / 4, 2, axis=0),
        call(DOUBLES[0] / 4, 3),
        call((WAVE * 0.25).astype(np.float16), 3),
        call(np.zeros((0, 6), np.float32), 3),
        call(EMPTY, 3),
    ],
    "compute_interference_strength": [
        *(call(one, other) for one, other in PAIRS),
        call(CUBE, CUBE[:, ::-1].copy(), axis=1),
        call(np.zeros((0, 6), np.float32), np.zeros((0, 6), np.float32)),
    ],
    "compute_phase_coherence": [
        *(call(one, other) for one, other in PAIRS),
        call(CUBE, CUBE[:, ::-1].copy(), axis=1),
        *(call(WAVE, SECOND, span) for span in ((0.1, 0.3), (0.0, 0.25), (0.5, 0.5), (0.3, 0.1), (-1, 9), (0.6, 0.9))),
        call(WAVES, SECOND, freq_range=(1 / 12, 3 / 12)),
        call(*DOUBLES, (0.1, 0.3)),
    ],
    "partial_interference": [
        call(WAVE, SECOND, 4),
        *(call(one, other, 5) for one, other in PAIRS),
        call(CUBE, CUBE[:, ::-1].copy(), 2, axis=1),
        call(CUBE, CUBE[:, ::-1].copy(), 2, axis=0),
        call(WAVE, SECOND, 12),
        call(WAVE, SECOND, 1),
    ],
}
