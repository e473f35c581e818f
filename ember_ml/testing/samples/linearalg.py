"""Inputs for linear algebra: single matrices and batches, vectors, integers, complex numbers, and nothing at all."""

from __future__ import annotations

import numpy as np

from ember_ml.testing.samples import Call, call

RNG = np.random.default_rng(11)


def drawn(*shape: int) -> np.ndarray:
    """Numbers in float32 that are far enough from a singular matrix's."""
    values = np.round(RNG.uniform(-2, 2, shape) * 8) / 8
    if len(shape) >= 2 and shape[-1] == shape[-2]:
        values = values + 3 * np.eye(shape[-1])
    return values.astype(np.float32)


def phased(x: np.ndarray) -> np.ndarray:
    """The same with imaginary parts."""
    return np.asarray(x + 1j * np.round(RNG.uniform(-1, 1, x.shape) * 8) / 8, np.complex64)


def definite(x: np.ndarray) -> np.ndarray:
    """A Hermitian positive definite matrix."""
    return np.asarray(x @ x.conj().swapaxes(-2, -1) + np.eye(x.shape[-1]), x.dtype)


SQUARE = drawn(3, 3)
BATCH = drawn(2, 3, 3)
TALL, WIDE = drawn(4, 3), drawn(3, 4)
TALLS = drawn(2, 4, 3)
DOUBLE = drawn(4, 4).astype(np.float64)
COMPLEX = phased(SQUARE)
COMPLEX_TALL = phased(TALL)
HALF = SQUARE.astype(np.float16)
ONE = drawn(1, 1)
NONE = np.zeros((0, 0), np.float32)
NONES = np.zeros((2, 0, 0), np.float32)
NO_BATCH = np.zeros((0, 2, 2), np.float32)
NO_ROWS = np.zeros((0, 3), np.float32)
NO_COLUMNS = np.zeros((3, 0), np.float32)
VECTOR = drawn(3)
COLUMNS = drawn(3, 2)
NUMBER = np.asarray(2.5, np.float32)
WHOLE = np.asarray([[3, 1, -2], [5, 4, 4], [0, 2, 7]], np.int32)
BYTES = np.asarray([[100, 100], [2, 1]], np.int8)
LARGE = np.asarray([[2**40 + 1, 3], [5, 2**20]], np.int64)
SINGULAR = np.asarray([[1.0, 2.0], [2.0, 4.0]], np.float32)
# A tolerance for each matrix of two.
BY_MATRIX = call(np.stack([np.diag([4.0, 1.0])] * 2).astype(np.float32), rtol=np.asarray([0.125, 0.5], np.float32))
NAN = np.asarray([[1.0, np.nan], [2.0, 4.0]], np.float32)
SYMMETRIC = definite(SQUARE)
SYMMETRICS = definite(BATCH)
HERMITIAN = definite(COMPLEX)
FACTOR = np.linalg.cholesky(SYMMETRIC)
FACTORS = np.linalg.cholesky(SYMMETRICS)
HERMITIAN_FACTOR = np.linalg.cholesky(HERMITIAN)

SQUARES = [call(SQUARE), call(BATCH), call(DOUBLE), call(COMPLEX), call(HALF), call(ONE), call(WHOLE)]
# Without float64: MLX 0.32 does not support the complex128 results.
SINGLE_SQUARES = [call(SQUARE), call(BATCH), call(COMPLEX), call(HALF), call(ONE), call(WHOLE)]
EMPTY_SQUARES = [call(NONE), call(NONES), call(NO_BATCH)]
MATRICES = [*SQUARES, call(TALL), call(WIDE), call(TALLS), call(COMPLEX_TALL)]
EMPTY_MATRICES = [*EMPTY_SQUARES, call(NO_ROWS), call(NO_COLUMNS)]
DEFINITE = [call(SYMMETRIC), call(SYMMETRICS), call(SYMMETRIC.astype(np.float64)), call(HERMITIAN), call(SYMMETRIC + 5)]

# The first call is drawn anew in every dtype: one row and column, so that it stays positive definite.
SURELY_DEFINITE = np.asarray([[[2.0]], [[3.0]]], np.float32)


def with_options(calls: list[Call], **options: object) -> list[Call]:
    """The same calls with further options."""
    return [Call(one.args, {**one.kwargs, **options}) for one in calls]


RIGHT = [
    call(SQUARE, COLUMNS),
    call(SQUARE, VECTOR),
    call(BATCH, COLUMNS),
    call(BATCH, VECTOR),
    call(BATCH, drawn(2, 3, 2)),
    call(SQUARE, drawn(2, 3, 2)),
    call(BATCH[:, None], drawn(1, 2, 3, 1)),
    call(drawn(2, 2, 2), drawn(2, 2)),
    call(DOUBLE, drawn(4, 2).astype(np.float64)),
    call(COMPLEX, phased(COLUMNS)),
    call(COMPLEX, VECTOR),
    call(HALF, VECTOR.astype(np.float16)),
    call(NONE, np.zeros((0, 2), np.float32)),
    call(SQUARE, NO_COLUMNS),
]

PRODUCTS = [
    call(SQUARE, COLUMNS),
    call(VECTOR, VECTOR),
    call(SQUARE, VECTOR),
    call(VECTOR, COLUMNS),
    call(WHOLE, WHOLE),
    call(WHOLE, WHOLE[0]),
    call(WHOLE[0], WHOLE),
    call(WHOLE[0], WHOLE[0]),
    call(BYTES, BYTES),
    call(LARGE, LARGE),
    call(COMPLEX, COMPLEX),
    call(DOUBLE, DOUBLE),
    call(TALL, NO_COLUMNS),
    call(NO_COLUMNS, NO_ROWS),
    call(WHOLE[:, :0], WHOLE[:0, :]),
    call(np.full((2, 512), 0.1, np.float16), np.full((512, 2), 0.1, np.float16)),
]

CALLS = {
    "matmul": [
        *PRODUCTS,
        call(BATCH, COLUMNS),
        call(VECTOR, BATCH),
        call(BATCH, VECTOR),
        call(BATCH[:, None], BATCH),
        call(WHOLE[None], WHOLE[:, :2]),
    ],
    "dot": [
        *PRODUCTS,
        call(NUMBER, SQUARE),
        call(SQUARE, NUMBER),
        call(TALL, BATCH),
        call(TALLS, BATCH),
        call(TALLS, VECTOR),
    ],
    "vdot": [
        call(SQUARE, BATCH[0]),
        call(VECTOR, VECTOR),
        call(COMPLEX, phased(SQUARE)),
        call(WHOLE, WHOLE),
        call(NO_ROWS, NO_ROWS),
        call(NUMBER, NUMBER),
    ],
    "inner": [
        call(TALL, SQUARE),
        call(VECTOR, VECTOR),
        call(TALLS, VECTOR),
        call(WHOLE, WHOLE),
        call(COMPLEX, COMPLEX),
        call(NUMBER, SQUARE),
        call(NO_COLUMNS, NO_COLUMNS),
    ],
    "outer": [call(VECTOR, VECTOR[:2]), call(COLUMNS, VECTOR), call(WHOLE[0], WHOLE[1]), call(NO_ROWS, VECTOR)],
    "vecdot": [
        call(TALL, VECTOR),
        call(TALLS, TALL),
        call(SQUARE, SQUARE, axis=0),
        call(TALLS, TALL, axis=-2),
        call(COMPLEX, phased(SQUARE)),
        call(WHOLE, WHOLE),
        call(BYTES, BYTES),
        call(NO_COLUMNS, NO_COLUMNS),
    ],
    "tensordot": [
        call(TALLS, TALL),
        call(TALL, SQUARE, axes=1),
        call(VECTOR, SQUARE, axes=0),
        call(TALLS, BATCH, axes=((0, 2), (0, 1))),
        call(TALLS, BATCH, axes=(-1, -1)),
        call(TALLS, BATCH, axes=([2, 0], [-1, 0])),
        call(WHOLE, WHOLE, axes=1),
        call(COMPLEX, COMPLEX),
        call(NO_COLUMNS, NO_ROWS, axes=1),
        call(NUMBER, VECTOR, axes=0),
    ],
    "einsum": [
        call("ij,jk->ik", SQUARE, COLUMNS),
        call("ij,jk", SQUARE, COLUMNS),
        call("ba", TALL),
        call("ii", SQUARE),
        call("ii->i", SQUARE),
        call("bii->b", BATCH),
        call("ij->", TALL),
        call("ij->ji", TALL),
        call("i,j->ij", VECTOR, VECTOR),
        call("i,i", VECTOR, VECTOR),
        call("bij,bjk->bik", BATCH, BATCH),
        call("...ij,...jk->...ik", BATCH, SQUARE),
        call("...ij->...ji", BATCH),
        call("...,...", BATCH, SQUARE),
        call("bij,bj->i", BATCH, drawn(2, 3)),
        call("ij,ij->ij", SQUARE, SQUARE),
        call("ij,kl->", SQUARE, COLUMNS),
        call("ij,jk,kl->il", TALL, SQUARE, COLUMNS),
        call("ij,jk,kl,lm->im", WIDE.T, SQUARE, COLUMNS, drawn(2, 5)),
        call("i,i,i->", VECTOR, VECTOR, VECTOR),
        call("bij,bjk,bkl->l", BATCH, BATCH, BATCH),
        call("i, j , k -> k j i", VECTOR, VECTOR, VECTOR),
        call("ij,jk->ik", COMPLEX, COMPLEX),
        call("ij,jk->ik", WHOLE, WHOLE),
        call("ij,jk,kl->il", WHOLE, WHOLE, WHOLE),
        call("ij,ij->i", SQUARE, SQUARE[:, :1]),
        call("ij,jk->ik", NO_COLUMNS, NO_ROWS),
        call("ij,jk->ik", HALF, HALF),
        call(",i", NUMBER, VECTOR),
    ],
    "multi_dot": [
        call([TALL, SQUARE, COLUMNS]),
        call([TALL, SQUARE]),
        call([VECTOR, SQUARE, COLUMNS]),
        call([SQUARE, SQUARE, VECTOR]),
        call([VECTOR, SQUARE, SQUARE, VECTOR]),
        call([drawn(2, 5), drawn(5, 3), drawn(3, 4), drawn(4, 2)]),
        call([WHOLE, WHOLE, WHOLE]),
    ],
    "kron": [
        call(COLUMNS, SQUARE),
        call(VECTOR, VECTOR[:2]),
        call(VECTOR, COLUMNS),
        call(NUMBER, SQUARE),
        call(WHOLE, WHOLE),
        call(NO_ROWS, SQUARE),
        call(BATCH, VECTOR),
    ],
    "cross": [
        call(TALL, drawn(4, 3)),
        call(VECTOR, TALL),
        call(COLUMNS, drawn(3, 2), axis=0),
        call(BATCH, SQUARE, axis=-2),
        call(WHOLE, WHOLE[::-1].copy()),
        call(COMPLEX, SQUARE),
        call(NO_ROWS, NO_ROWS),
    ],
    "trace": [
        call(SQUARE),
        call(TALL),
        call(TALLS, offset=1),
        call(WIDE, offset=-1),
        call(BYTES),
        call(BYTES, dtype="int8"),
        call(WHOLE, dtype="float32"),
        call(COMPLEX),
        call(SQUARE, offset=7),
        call(NONE),
        call(NONES),
    ],
    "diagonal": [
        call(SQUARE),
        call(TALLS),
        call(WIDE, offset=1),
        call(WIDE, offset=3),
        call(WIDE, offset=-2),
        call(SQUARE, offset=3),
        call(SQUARE, offset=-8),
        call(WHOLE),
        call(NONE),
        call(NO_ROWS),
    ],
    "matrix_power": [
        call(SQUARE, 3),
        call(SQUARE, 0),
        call(SQUARE, 1),
        call(SQUARE, 2),
        call(BATCH, 5),
        call(BATCH, 0),
        call(SQUARE, -1),
        call(BATCH, -3),
        call(WHOLE, 4),
        call(BYTES, 0),
        call(COMPLEX, -2),
        call(NONE, 2),
    ],
    "norm": [
        call(SQUARE),
        call(TALLS),
        call(VECTOR),
        call(VECTOR, 1),
        call(VECTOR, np.inf),
        call(VECTOR, -np.inf),
        call(VECTOR, 0),
        call(VECTOR, 3.5),
        call(SQUARE, "fro"),
        call(SQUARE, "nuc"),
        call(SQUARE, 1),
        call(SQUARE, -1),
        call(SQUARE, 2),
        call(SQUARE, -2),
        call(SQUARE, np.inf),
        call(SQUARE, -np.inf),
        call(TALLS, axis=1),
        call(TALLS, axis=(0, 2)),
        call(TALLS, 1, axis=(2, 0)),
        call(TALLS, 2, (-1, 0), True),
        call(TALLS, keepdims=True),
        call(TALLS, 1, 1, True),
        call(COMPLEX),
        call(COMPLEX, 1),
        call(WHOLE),
        call(HALF),
        call(NO_ROWS),
        call(NUMBER),
    ],
    "vector_norm": [
        call(SQUARE, axis=0),
        *(call(VECTOR, ord=n) for n in (1, 2, 3, 0, 0.5, -1, -2, np.inf, -np.inf)),
        call(TALLS),
        call(TALLS, axis=(0, 2)),
        call(TALLS, axis=(0, 2), keepdims=True, ord=1),
        call(TALLS, axis=(1, -1), ord=np.inf),
        call(TALLS, axis=[0, 1], ord=3),
        call(TALLS, axis=()),
        call(TALLS, keepdims=True),
        call(TALLS, keepdims=True, ord=np.inf),
        call(COMPLEX, axis=-1),
        call(COMPLEX, axis=-1, ord=1),
        call(COMPLEX, ord=-np.inf),
        call(HALF),
        call(np.full((4096,), 8.0, np.float16)),
        call(NAN, axis=0),
        call(NAN, ord=np.inf),
        call(NO_ROWS),
        call(NO_ROWS, axis=0, ord=1),
        call(NUMBER),
    ],
    "matrix_norm": [
        call(SQUARE),
        *(call(x, ord=n) for x in (TALLS, COMPLEX, HALF) for n in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)),
        call(TALLS, keepdims=True),
        call(TALLS, keepdims=True, ord=1),
        call(TALLS, keepdims=True, ord="nuc"),
        call(WHOLE),
        call(NONE),
    ],
    "cond": [
        call(SQUARE[:2, :2]),
        call(SQUARE),
        call(TALLS),
        *(call(x, n) for x in (BATCH, COMPLEX) for n in (2, -2, 1, -1, "fro", "nuc", np.inf, -np.inf)),
        call(np.stack([SINGULAR, SQUARE[:2, :2]]), 1),
        call(np.zeros((2, 2), np.float32)),
        call(HALF),
        call(WHOLE),
    ],
    "det": [*SQUARES, *EMPTY_SQUARES, call(SINGULAR), call(np.zeros((2, 2), np.float32))],
    "slogdet": [
        *SQUARES,
        *EMPTY_SQUARES,
        call(-DOUBLE),
        call(np.zeros((2, 2), np.float32)),
        call(SQUARE[[1, 0, 2]]),
    ],
    "logdet": [*SQUARES, *EMPTY_SQUARES, call(SQUARE[[1, 0, 2]]), call(np.zeros((2, 2), np.float32))],
    "matrix_rank": [
        *MATRICES,
        *EMPTY_MATRICES,
        call(SINGULAR),
        call(np.zeros((2, 2), np.float32)),
        call(SQUARE, rtol=0.9),
        BY_MATRIX,
        call(np.stack([SINGULAR, np.eye(2, dtype=np.float32)])),
    ],
    "inv": [*SQUARES, *EMPTY_SQUARES],
    "pinv": [
        *MATRICES,
        *EMPTY_MATRICES,
        call(SINGULAR),
        call(TALL, rtol=0.5),
        call(np.zeros((2, 3), np.float32)),
        BY_MATRIX,
    ],
    # Drawn anew as bool, most matrices are singular: the first calls are of those that are not.
    "solve": [call(ONE, COLUMNS[:1]), *RIGHT],
    "solve_triangular": [
        call(SQUARE, COLUMNS, unit_diagonal=True),
        *RIGHT,
        *with_options(RIGHT, lower=True),
        *with_options(RIGHT[:10], adjoint=True),
        *with_options(RIGHT[:10], lower=True, adjoint=True),
        *with_options(RIGHT[:10], unit_diagonal=True),
        *with_options(RIGHT[:10], lower=True, unit_diagonal=True),
    ],
    "lstsq": [
        call(TALL, drawn(4, 2)),
        call(TALL, drawn(4)),
        call(SQUARE, VECTOR),
        call(WIDE, COLUMNS),
        call(TALLS, drawn(2, 4, 2)),
        call(TALLS, drawn(4)),
        call(COMPLEX_TALL, phased(drawn(4, 1))),
        call(TALL.astype(np.float64), drawn(4, 2).astype(np.float64), 1e-3),
        call(SINGULAR, VECTOR[:2]),
        call(NO_ROWS, NO_ROWS[:, :2]),
        call(NO_COLUMNS, COLUMNS),
        call(TALL, drawn(4, 2)[:, :0]),
        call(TALL.astype(np.float16), drawn(4, 2).astype(np.float16)),
    ],
    "cholesky": [
        call(SURELY_DEFINITE),
        *DEFINITE,
        *EMPTY_SQUARES,
        *with_options(DEFINITE, upper=True),
        call(np.tril(SYMMETRIC)),
        call(np.tril(HERMITIAN)),
        call(SYMMETRIC.astype(np.float16)),
    ],
    "cholesky_solve": [
        # No factor drawn anew as bool would do, so it is given as a list, which is not.
        call(COLUMNS[:1], [[True]]),
        call(COLUMNS, FACTOR),
        call(COLUMNS, FACTORS),
        call(drawn(2, 3, 2), FACTOR),
        call(COLUMNS, FACTOR.T.copy(), upper=True),
        call(phased(COLUMNS), HERMITIAN_FACTOR),
        call(phased(COLUMNS), HERMITIAN_FACTOR.conj().T.copy(), upper=True),
    ],
    "cholesky_inverse": [
        call(FACTOR),
        call(FACTORS),
        call(FACTOR.T.copy(), upper=True),
        call(HERMITIAN_FACTOR),
        call(HERMITIAN_FACTOR.conj().T.copy(), upper=True),
        call(FACTOR.astype(np.float64)),
    ],
    "lu": [*MATRICES, *EMPTY_MATRICES, call(drawn(40, 40)), call(drawn(2, 36, 5)), call(drawn(5, 36)), call(SINGULAR)],
    "lu_factor": [*MATRICES, *EMPTY_MATRICES, call(drawn(40, 40)), call(drawn(2, 36, 5)), call(SINGULAR)],
    "qr": [
        *MATRICES,
        *EMPTY_MATRICES,
        call(SQUARE, mode="complete"),
        call(TALL, mode="complete"),
        call(TALLS, mode="complete"),
        call(WIDE, mode="complete"),
        call(COMPLEX_TALL, mode="complete"),
    ],
    "svd": [*MATRICES, *EMPTY_MATRICES, *with_options([*MATRICES, *EMPTY_MATRICES], full_matrices=False)],
    "svdvals": [*MATRICES, *EMPTY_MATRICES],
    "eig": [
        *SINGLE_SQUARES,
        *EMPTY_SQUARES,
        call(np.asarray([[0, 1, 0, 0], [-1, 0, 0, 0], [0, 0, 0, 2], [0, 0, -2, 0]], np.float32)),
        call(np.diag([3.0, -1.0, 2.0]).astype(np.float32)),
    ],
    "eigvals": [*SINGLE_SQUARES, *EMPTY_SQUARES],
    "eigh": [*DEFINITE, *SQUARES, *EMPTY_SQUARES, call(np.asarray([[0, 1], [1, 0]], np.float32))],
    "eigvalsh": [*DEFINITE, *SQUARES, *EMPTY_SQUARES],
    "expm": [
        *SQUARES,
        *EMPTY_SQUARES,
        call(SQUARE * 0),
        call(SQUARE / 64),
        call(-SYMMETRIC * 50),
        call(np.stack([SQUARE / 100, SQUARE, SQUARE - 20 * np.eye(3, dtype=np.float32)])),
        call(np.asarray([[0.0, 30.0], [-30.0, 0.0]], np.float64)),
    ],
    "logm_spd": [call(SURELY_DEFINITE), *DEFINITE],
    "sqrtm_spd": [call(SURELY_DEFINITE), *DEFINITE, call(SINGULAR), call(NONE), call(np.zeros((2, 2), np.float32))],
    "orthogonal": [
        call((3, 3), key=1),
        call((4, 2), key=(1, 2)),
        call((2, 4), 0.5, key=3),
        call((2, 3, 3), dtype="float64", key=4),
        call((3, 3), dtype="float16", key=5),
        call((3, 0), key=6),
    ],
    "orthogonalize": MATRICES,
    "cdist": [
        call(TALL, SQUARE),
        call(TALLS, BATCH),
        call(TALLS, SQUARE),
        *(call(TALL, SQUARE, n) for n in (0.0, 1.0, 3.0, np.inf)),
        call(TALL, TALL),
        call(NO_ROWS, TALL),
        call(NO_COLUMNS, NO_COLUMNS),
        call(HALF, HALF),
    ],
    "conjugate_gradient": [
        call(SYMMETRIC, VECTOR),
        call(SYMMETRIC, drawn(2, 3)),
        call(SYMMETRICS, drawn(2, 3)),
        call(SYMMETRIC, VECTOR, VECTOR),
        call(SYMMETRIC.astype(np.float64), VECTOR.astype(np.float64), tol=1e-12),
        call(HERMITIAN, phased(VECTOR)),
        call(SYMMETRIC, VECTOR * 0),
        call(SYMMETRIC, VECTOR, maxiter=1),
    ],
}

DOMAIN = dict.fromkeys(["cholesky", "logm_spd", "sqrtm_spd"], (1.0, 3.0))
