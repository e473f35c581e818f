"""A port to EmberTensors of code that calls functions of SciPy."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import programs

from ember_ml.backend import Backend

PROGRAM = """
    import numpy as np
    from scipy import fftpack, special
    from scipy.special import gamma, j0, jn_zeros, jv


    def bessel(x, order):
        return j0(x) * jv(order, x) + np.sqrt(x)


    def nested(x):
        return special.gammaln(gamma(np.asarray(x)))


    def spectrum(x):
        return fftpack.fftshift(fftpack.fft(2j * np.asarray(x), 2))


    def constant():
        return gamma(5), jv(1, -2.0), jn_zeros(int(1), 2).tolist()
"""


def ported(text: str) -> str:
    return programs.ported(text).after.decode()


def test_functions_of_scipy_get_arrays(backend: Backend) -> None:
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    exec(textwrap.dedent(PROGRAM), before)
    exec(ported(PROGRAM), after)
    x = after["tensor"].asarray([1.0, 2.5], dtype="float64")
    assert np.allclose(after["bessel"](x, 2).numpy(), before["bessel"](np.asarray([1.0, 2.5]), 2))
    assert np.allclose(after["nested"](x).numpy(), before["nested"]([1.0, 2.5]))
    assert np.allclose(after["spectrum"]([1, 2]).numpy(), before["spectrum"]([1, 2]))
    assert after["constant"]() == before["constant"]()


def test_numbers_stay() -> None:
    text = ported(PROGRAM)
    assert "return gamma(5), jv(1, -2.0), jn_zeros(int(1), 2).tolist()" in text
    assert "tensor.asarray(j0(tensor.to_numpy(x)))" in text


def test_files_without_arrays_stay() -> None:
    text = "from scipy.special import j0\n\n\ndef f(x):\n    return j0(x)\n"
    assert ported(text) == text
