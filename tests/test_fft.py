"""What the contract cannot say of Fourier transforms: other libraries agree, inverses invert, errors are errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.fft
import scipy.signal
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import ember_ml
from ember_ml import ops, transform
from ember_ml.backend import Backend
from ember_ml.errors import UnsupportedError
from ember_ml.ops.fft import ifft
from ember_ml.testing.comparison import assert_close, dtype_name, host

RNG = np.random.default_rng(3)
REAL = RNG.normal(size=(4, 5, 6)).astype(np.float32)
COMPLEX = (REAL + 1j * RNG.normal(size=REAL.shape)).astype(np.complex64)
SIGNAL = RNG.normal(size=(2, 200)).astype(np.float32)

NORMS = ["backward", "forward", "ortho"]
OF_REAL = {"rfft", "rfft2", "rfftn", "ihfft"}


def sample(name: str) -> np.ndarray:
    """Numbers of the kind that a transform takes."""
    return REAL if name in OF_REAL else COMPLEX


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_transforms_along_an_axis_are_numpy(backend: Backend, name: str, norm: str) -> None:
    x = sample(name)
    for axis in (-1, 0, 1):
        for n in (None, 3, 5, 8, 11):
            options: dict[str, Any] = {"n": n, "axis": axis, "norm": norm}
            result = host(getattr(ops, name)(x, **options))
            expected = getattr(np.fft, name)(x, **options)
            assert result.shape == expected.shape
            assert result.dtype == expected.dtype
            assert_close(result, expected, 2e-5)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ["fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"])
def test_transforms_over_several_axes_are_scipy(backend: Backend, name: str, norm: str) -> None:
    x = sample(name)
    for s, axes in [(None, (0, 1)), ((4, 7), (-1, 0)), ((3, 3), (1, 2))]:
        options: dict[str, Any] = {"s": s, "axes": axes, "norm": norm}
        result, expected = host(getattr(ops, name)(x, **options)), getattr(scipy.fft, name)(x, **options)
        assert result.shape == expected.shape
        assert_close(result, expected, 5e-5)
    if name.endswith("n"):
        for s in (None, (4,), (5, 3)):
            expected = getattr(scipy.fft, name)(x, s=s, norm=norm)
            assert_close(host(getattr(ops, name)(x, s=s, norm=norm)), expected, 5e-5)


def test_precision_follows_the_argument(backend: Backend) -> None:
    for name in ("float16", "bfloat16", "float32", "int8", "uint16", "int64", "bool"):
        x = ops.ones((2, 4), dtype=name)
        assert dtype_name(ops.fft(x)) == dtype_name(ops.rfft(x)) == "complex64"
        assert dtype_name(ops.irfft(x)) == "float32"
        assert dtype_name(ops.stft(x, 2, 1, 2)) == "complex64"
    assert dtype_name(ops.dct(ops.ones(4, dtype="float16"))) == "float16"
    x = ops.asarray(SIGNAL[0].astype(np.float64))
    assert_close(host(ops.dct(x)), scipy.fft.dct(host(x)), 1e-12)
    assert_close(host(ops.irfft(x)), scipy.fft.irfft(host(x)), 1e-12)
    if "complex128" in backend.dtypes:
        assert dtype_name(ops.fft(x)) == "complex128"
        assert_close(host(ops.fft(x)), scipy.fft.fft(host(x)), 1e-12)
        assert_close(host(ops.stft(x, 16, 4, 16)), reference_stft(host(x), 16, 4, 16), 1e-12)
    else:
        for run in (ops.fft, ops.rfft, ops.ihfft, ops.fftn, ops.ifft):
            with pytest.raises(UnsupportedError, match="complex128"):
                run(x)


def test_integers_follow_the_default_float() -> None:
    ember_ml.set_backend("torch")
    ops.set_default_dtype("float64")
    try:
        for engine in ("numpy", "torch"):
            with ember_ml.use_backend(engine):
                assert dtype_name(ops.fft([1, 2, 3])) == "complex128"
                assert dtype_name(ops.fftfreq(4)) == "float64"
        if "mlx" in ember_ml.get_available_backends():
            with ember_ml.use_backend("mlx"), pytest.raises(UnsupportedError):
                ops.fft([1, 2, 3])
    finally:
        ops.set_default_dtype("float32")
        ember_ml.set_backend("numpy")


# Few lengths, since JAX compiles each transform of each of them.
@settings(max_examples=25, deadline=None, database=None, derandomize=True)
@given(length=st.sampled_from([1, 2, 13, 32]), norm=st.sampled_from(NORMS), seed=st.integers(0, 9))
def test_inverses_invert(length: int, norm: str, seed: int) -> None:
    x = np.random.default_rng(seed).normal(size=(2, length)).astype(np.float32)
    for engine in ember_ml.get_available_backends():
        with ember_ml.use_backend(engine):
            assert_close(host(ops.ifft(ops.fft(x, norm=norm), norm=norm)), x + 0j, 1e-5)
            assert_close(host(ops.irfft(ops.rfft(x, norm=norm), n=length, norm=norm)), x, 1e-5)
            assert_close(host(ops.hfft(ops.ihfft(x, norm=norm), n=length, norm=norm)), x, 1e-5)
            assert_close(host(ops.irfftn(ops.rfftn(x, norm=norm), s=x.shape, norm=norm)), x, 1e-5)
            for kind in (1, 2, 3, 4) if length > 1 else (2, 3, 4):
                assert_close(host(ops.idct(ops.dct(x, kind, norm=norm), kind, norm=norm)), x, 1e-5)
            np.testing.assert_array_equal(host(ops.ifftshift(ops.fftshift(x))), x)


def test_gradients_of_inverse_transforms_of_real_numbers_over_three_axes(backend: Backend) -> None:
    """The sizes ``s`` are those of all axes; the last transform is of another kind than the ones before."""
    weights = np.random.default_rng(4).normal(size=(3, 6, 7)).astype(np.float32)
    leaf = torch.from_numpy(COMPLEX.copy()).requires_grad_()
    (torch.fft.irfftn(leaf, s=(3, 6, 7)) * torch.from_numpy(weights)).sum().backward()
    found = transform.grad(lambda z: ops.sum(ops.multiply(ops.irfftn(z, s=(3, 6, 7)), weights)))(ops.asarray(COMPLEX))
    assert_close(host(found), leaf.grad.numpy(), 1e-5)


@pytest.mark.parametrize("norm", [None, *NORMS])
@pytest.mark.parametrize("kind", [1, 2, 3, 4])
def test_cosine_transforms_are_scipy(backend: Backend, kind: int, norm: str | None) -> None:
    for axis, n in [(-1, None), (0, None), (1, 3), (1, 9), (2, 2)]:
        options: dict[str, Any] = {"axis": axis, "n": n, "norm": norm}
        assert_close(host(ops.dct(REAL, kind, **options)), scipy.fft.dct(REAL, kind, **options), 1e-5)
        assert_close(host(ops.idct(REAL, kind, **options)), scipy.fft.idct(REAL, kind, **options), 1e-5)


def test_long_cosine_transforms_keep_their_precision(backend: Backend) -> None:
    for length in (4096, 4099):
        x = RNG.normal(size=length).astype(np.float32)
        for kind in (1, 2, 3, 4):
            expected = scipy.fft.dct(x.astype(np.float64), kind, norm="ortho")
            assert_close(host(ops.dct(x, kind, norm="ortho")), expected, 1e-5)


def test_frequencies_are_numpy(backend: Backend) -> None:
    for n in (1, 2, 7, 10):
        for d in (1.0, 0.25, 3):
            assert_close(host(ops.fftfreq(n, d=d)), np.fft.fftfreq(n, d), 1e-6)
            assert_close(host(ops.rfftfreq(n, d=d)), np.fft.rfftfreq(n, d), 1e-6)
    # float16 holds no whole number above 2048 but the even ones, and no quotient of them then.
    assert_close(host(ops.fftfreq(5000, dtype="float16")), np.fft.fftfreq(5000).astype(np.float16), 1e-3)
    for axes in (None, 0, (1, 2)):
        np.testing.assert_array_equal(host(ops.fftshift(REAL, axes=axes)), np.fft.fftshift(REAL, axes))
        np.testing.assert_array_equal(host(ops.ifftshift(REAL, axes=axes)), np.fft.ifftshift(REAL, axes))


def reference_stft(x: np.ndarray, length: int, stride: int, size: int, **options: Any) -> np.ndarray:
    """torch's own short-time transform, with the frequencies last."""
    center = options.get("center", True)
    signal = torch.from_numpy(x)
    window = torch.hann_window(length, dtype=signal.dtype)
    found = torch.stft(signal, size, stride, length, window, center=center, return_complex=True)
    return found.transpose(-1, -2).numpy()


STRETCHES = [(16, 4, 16), (10, 3, 16), (16, 8, 17), (7, 7, 7), (1, 1, 2)]


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("stretches", STRETCHES)
def test_short_time_transforms_are_torch(backend: Backend, stretches: tuple[int, int, int], center: bool) -> None:
    result = host(ops.stft(SIGNAL, *stretches, center=center))
    expected = reference_stft(SIGNAL, *stretches, center=center)
    assert result.shape == expected.shape
    assert_close(result, expected, 1e-5)
    length, stride, size = stretches
    if not center or stride == length:
        # torch refuses to invert where a sample is in no window.
        return
    spectra, window = torch.from_numpy(expected).transpose(-1, -2), torch.hann_window(length)
    for cut in (None, 100):
        wanted = torch.istft(spectra, size, stride, length, window, length=cut).numpy()
        assert_close(host(ops.istft(expected, *stretches, length=cut)), wanted, 1e-5)


def test_short_time_transforms_are_scipy(backend: Backend) -> None:
    window = scipy.signal.get_window("hamming", 16)
    engine = scipy.signal.ShortTimeFFT(window, 4, fs=1.0, phase_shift=None)
    expected = engine.stft(SIGNAL.astype(np.float64), p0=2, p1=40)
    result = host(ops.stft(SIGNAL, 16, 4, 16, window="hamming", center=False))
    assert_close(result[:, :38].swapaxes(-1, -2), expected, 1e-5)


@pytest.mark.parametrize("window", ["hann", "hamming", None, np.linspace(0.5, 1.0, 12, dtype=np.float32)])
def test_short_time_transforms_are_inverted(backend: Backend, window: Any) -> None:
    for fft_length in (12, 16, 19):
        spectra = ops.stft(SIGNAL, 12, 3, fft_length, window)
        whole = host(ops.istft(spectra, 12, 3, fft_length, SIGNAL.shape[-1], window))
        covered = SIGNAL.shape[-1] - fft_length
        assert_close(whole[:, :covered], SIGNAL[:, :covered], 1e-5)
        assert whole.shape == SIGNAL.shape


def test_the_end_is_continued_with_zeros_and_the_unreached_is_zero(backend: Backend) -> None:
    spectra = ops.stft(SIGNAL, 8, 8, 8, center=False)
    back = host(ops.istft(spectra, 8, 8, 8, 210, center=False))
    assert_close(back[:, 1:8], SIGNAL[:, 1:8], 1e-4)
    assert (back[:, ::8] == 0).all()
    assert (back[:, 200:] == 0).all()


def test_the_function_is_the_namespace(backend: Backend) -> None:
    x = [1.0, 2.0, 3.0]
    names = ["ifft", "fft2", "rfftn", "hfft", "fftfreq", "fftshift", "stft", "istft", "dct", "idct", "fft"]
    for name in names:
        assert getattr(ops.fft, name) is getattr(ops, name)
    assert ifft is ops.ifft
    assert_close(host(ops.fft.ifft(ops.fft(x))), np.asarray(x) + 0j, 1e-6)
    assert_close(host(ifft(ops.fft.fft(x))), np.asarray(x) + 0j, 1e-6)
    import ember_ml.ops.fft

    assert ember_ml.ops.fft is ops.fft


def test_bad_values_are_value_errors(backend: Backend) -> None:
    one = ops.asarray(1.0)
    wrong = [
        lambda: ops.fft(REAL, norm="sideways"),
        lambda: ops.hfft(REAL, norm="sideways"),
        lambda: ops.dct(REAL, norm="sideways"),
        lambda: ops.fft(REAL, n=0),
        lambda: ops.rfft(REAL, n=-3),
        lambda: ops.fft(ops.zeros((2, 0))),
        lambda: ops.irfft(ops.zeros((2, 1))),
        lambda: ops.fft(one),
        lambda: ops.rfft(one),
        lambda: ops.irfft(one),
        lambda: ops.rfftn(one),
        lambda: ops.rfftn(REAL, axes=()),
        lambda: ops.fftn(REAL, axes=(0, 3)),
        lambda: ops.fftn(REAL, axes=(1, 1)),
        lambda: ops.fftn(REAL, axes=(1, -2)),
        lambda: ops.fftn(REAL, s=(3,), axes=(0, 1)),
        lambda: ops.fftn(REAL, s=(3, 3, 3, 3)),
        lambda: ops.ifftn(REAL, s=(0, 3)),
        lambda: ops.fft2([1.0, 2.0]),
        lambda: ops.fftshift(REAL, axes=3),
        lambda: ops.fftfreq(0),
        lambda: ops.rfftfreq(-1),
        lambda: ops.dct(REAL, 5),
        lambda: ops.dct([1.0], 1),
        lambda: ops.dct(REAL, n=0),
        lambda: ops.idct(one),
        lambda: ops.stft(one, 2, 1, 2),
        lambda: ops.stft(SIGNAL, 8, 1, 4),
        lambda: ops.stft(SIGNAL, 0, 1, 4),
        lambda: ops.stft(SIGNAL, 4, 0, 4),
        lambda: ops.stft(SIGNAL, 4, 1, 4, "square"),
        lambda: ops.stft(SIGNAL, 4, 1, 4, [1.0, 2.0]),
        lambda: ops.stft([1.0, 2.0], 4, 1, 4, center=False),
        lambda: ops.istft(COMPLEX, 4, 1, 4),
        lambda: ops.istft(COMPLEX, 10, 1, 10, -1),
        lambda: ops.istft(COMPLEX[0, 0], 10, 1, 10),
    ]
    for i, run in enumerate(wrong):
        try:
            with pytest.raises(ValueError):  # noqa: PT011 - the message is the engine's own
                run()
        except BaseException as error:
            error.add_note(f"case {i}")
            raise


def test_wrong_kinds_are_type_errors(backend: Backend) -> None:
    x = ops.asarray(COMPLEX)
    for run in (ops.rfft, ops.rfft2, ops.rfftn, ops.ihfft, ops.dct, ops.idct):
        with pytest.raises(TypeError):
            run(x)
    with pytest.raises(TypeError):
        ops.stft(x, 4, 1, 4)
    with pytest.raises(TypeError):
        ops.istft(REAL, 4, 1, 4)
    with pytest.raises(TypeError):
        ops.fftfreq(4, dtype="int32")


def test_tensors_compute_where_they_live(backend: Backend) -> None:
    if backend.name == "numpy":
        return
    x = ops.asarray(SIGNAL)
    other = "numpy" if backend.name == "torch" else "torch"
    with ember_ml.use_backend(other):
        results = [ops.dct(x), ops.stft(x, 8, 4, 8), ops.idct(x, 4)]
    assert all(isinstance(result, backend.tensors) for result in results)
