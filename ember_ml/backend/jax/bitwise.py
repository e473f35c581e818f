"""Bitwise logic and shifts on JAX."""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from ember_ml.backend.jax.core import jitted

bitwise_and, bitwise_or, bitwise_xor = map(jitted, (jnp.bitwise_and, jnp.bitwise_or, jnp.bitwise_xor))
bitwise_invert = jitted(jnp.bitwise_not)
# XLA compares counts with the width as unsigned integers, so that negative ones are large.
bitwise_left_shift, bitwise_right_shift = map(jitted, (jnp.left_shift, jnp.right_shift))
count_ones = jitted(lax.population_count)
