"""Inputs for Fourier transforms: every option, odd and even lengths, nothing in a batch, every precision."""

from __future__ import annotations

import numpy as np

from ember_ml.testing.samples import Call, call

ROWS = np.asarray([[1.0, -2.0, 0.5, 3.0, 0.25], [0.0, 1.5, -1.0, 2.0, 4.0]], np.float32)
EVEN = np.asarray([[1.0, -2.0, 0.5, 3.0], [0.0, 1.5, -1.0, 2.0], [2.0, 0.25, 1.0, -3.0]], np.float32)
CUBE = (np.arange(24, dtype=np.float32).reshape(2, 3, 4) * 7 % 11 - 4) / 4
COMPLEX = (EVEN - 1j * EVEN[::-1, ::-1]).astype(np.complex64)
WIDE = (EVEN[:2] + 0.5j).astype(np.complex128)
# Complex results are not sampled in double precision: MLX 0.32 does not support complex128 and raises an error.
DOUBLE = ROWS.astype(np.float64)
WHOLE = np.asarray([3, 1, -2, 5], np.int32)
HALF = EVEN.astype(np.float16)
TRUTH = np.asarray([True, False, True])
ONE = np.asarray([2.5], np.float32)
NO_ROWS = np.zeros((0, 4), np.float32)
ENDLESS = np.asarray([1.0, float("nan"), 2.0, 3.0], np.float32)

NORMS = ("backward", "forward", "ortho")


def along(*arrays: np.ndarray, first: np.ndarray = ROWS) -> list[Call]:
    """A transform along one axis, with every option."""
    return [
        call(first),
        *(call(array) for array in (EVEN, WHOLE, HALF, TRUTH, NO_ROWS, ENDLESS, *arrays)),
        *(call(array, norm=norm) for array in (first, EVEN) for norm in NORMS),
        *(call(first, n=n, norm="ortho") for n in (1, 2, 3, 4, 7, 8)),
        call(CUBE, axis=0),
        call(CUBE, axis=1, n=5, norm="forward"),
        call(CUBE, axis=-2, n=2),
        call(NO_ROWS, n=3),
        call(np.zeros((2, 0), np.float32), n=3),
        call(np.zeros((3, 0, 2), np.float32), axis=0, n=5),
    ]


def over(*arrays: np.ndarray) -> list[Call]:
    """A transform over several axes, with every option."""
    return [
        call(EVEN),
        *(call(array) for array in (CUBE, HALF, *arrays)),
        *(call(CUBE, norm=norm) for norm in NORMS),
        *(call(CUBE, s=(5, 3), axes=(0, 2), norm=norm) for norm in NORMS),
        call(CUBE, axes=(2, 0)),
        call(CUBE, axes=[-1]),
        call(CUBE, s=(2, 6)),
        call(CUBE, s=(-1, 5), axes=(1, 2)),
        call(CUBE, s=(4, -1), axes=(1, 0)),
        call(np.zeros((0, 2, 3), np.float32), axes=(1, 2)),
    ]


def planes(*arrays: np.ndarray) -> list[Call]:
    """A transform over two axes."""
    return [
        call(EVEN),
        call(CUBE, norm="ortho"),
        call(CUBE, axes=(0, 1)),
        call(CUBE, s=(2, 5)),
        *(call(array) for array in arrays),
    ]


def cosines() -> list[Call]:
    """A cosine transform of every type, length and norm."""
    return [
        call(ROWS),
        *(
            call(array, kind, norm=norm)
            for kind in (1, 2, 3, 4)
            for array in (ROWS, EVEN, ROWS[:, :2])
            for norm in (None, *NORMS)
        ),
        *(call(CUBE, kind, axis=axis, n=n) for kind in (1, 2, 3, 4) for axis, n in ((0, None), (1, 2), (-1, 7))),
        *(call(ONE, kind, norm=norm) for kind in (2, 3, 4) for norm in (None, "ortho")),
        *(call(array, kind) for kind in (1, 2, 3, 4) for array in (DOUBLE, WHOLE, HALF, NO_ROWS)),
    ]


SIGNAL = np.asarray([[1.0, 2.0, -1.0, 0.5, 3.0, 0.0, -2.0, 1.5, 0.25, 1.0]] * 2, np.float32) * [[1.0], [-0.5]]
SIGNAL = SIGNAL.astype(np.float32)
WINDOW = np.asarray([0.5, 1.0, 1.0, 0.25], np.float32)
SPECTRA = np.fft.rfft(CUBE.reshape(2, 3, 4)).astype(np.complex64)

CALLS = {
    "fft": along(COMPLEX, WIDE),
    "ifft": along(COMPLEX, WIDE),
    "fft2": planes(COMPLEX, WIDE),
    "ifft2": planes(COMPLEX, WIDE),
    "fftn": [*over(COMPLEX, WIDE), call(EVEN, axes=()), call(np.asarray(2.0, np.float32))],
    "ifftn": [*over(COMPLEX, WIDE), call(EVEN, axes=())],
    "rfft": along(),
    "irfft": along(COMPLEX, WIDE, DOUBLE, first=COMPLEX),
    "rfft2": planes(),
    "irfft2": planes(COMPLEX, WIDE, DOUBLE),
    "rfftn": over(),
    "irfftn": over(COMPLEX, WIDE, DOUBLE),
    "hfft": along(COMPLEX, WIDE, DOUBLE, first=COMPLEX),
    "ihfft": along(),
    "fftfreq": [
        *(call(n, d=d) for n in (1, 2, 5, 8) for d in (1.0, 0.1, 2)),
        *(call(7, dtype=dtype) for dtype in ("float16", "bfloat16", "float32", "float64")),
        call(6, device="cpu"),
    ],
    "rfftfreq": [
        *(call(n, d=d) for n in (1, 2, 5, 8) for d in (1.0, 0.1, 2)),
        *(call(7, dtype=dtype) for dtype in ("float16", "bfloat16", "float32", "float64")),
        call(6, device="cpu"),
    ],
    **{
        name: [
            call(ROWS),
            call(CUBE, axes=1),
            call(CUBE, axes=(0, -1)),
            call(CUBE, axes=[2]),
            call(WHOLE),
            call(COMPLEX),
            call(TRUTH),
            call(NO_ROWS),
            call(np.asarray(2.0, np.float32)),
            call(CUBE, axes=()),
        ]
        for name in ("fftshift", "ifftshift")
    },
    "stft": [
        call(SIGNAL, 4, 2, 4),
        call(SIGNAL, 4, 2, 4, center=False),
        call(SIGNAL, 4, 3, 4, window="hamming"),
        call(SIGNAL, 4, 1, 6, window=None),
        call(SIGNAL, 3, 2, 8, "hann", True),
        call(SIGNAL, 4, 2, 5, window=WINDOW),
        call(SIGNAL, 4, 2, 5, window=[0.5, 1.0, 1.0, 0.25], center=False),
        call(SIGNAL[0], 1, 1, 1),
        call(SIGNAL.reshape(2, 2, 5), 2, 2, 3),
        call(SIGNAL.astype(np.float16), 4, 2, 4),
        call(WHOLE, 2, 1, 2, center=False),
        call(SIGNAL[:, :2], 4, 4, 8),
    ],
    "istft": [
        call(SPECTRA, 4, 2, 4),
        call(SPECTRA, 4, 2, 4, center=False),
        call(SPECTRA, 4, 1, 4, 3),
        call(SPECTRA, 4, 3, 4, 9, "hamming"),
        call(SPECTRA, 3, 2, 5, window=None),
        call(SPECTRA, 4, 3, 5, window=WINDOW, center=False),
        call(SPECTRA, 2, 5, 4, center=False),
        call(SPECTRA[0], 4, 2, 4, length=0),
        call(SPECTRA[:, :1], 4, 2, 4),
        call(SPECTRA.astype(np.complex128), 4, 2, 4),
        call(SPECTRA[:0], 4, 2, 4),
    ],
    "dct": cosines(),
    "idct": cosines(),
}
