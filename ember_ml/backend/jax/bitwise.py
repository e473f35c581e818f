"""Bitwise logic and shifts on JAX."""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from ember_ml.backend.jax.core import jitted

bitwise_and = jitted(jnp.bitwise_and)
bitwise_or = jitted(jnp.bitwise_or)
bitwise_xor = jitted(jnp.bitwise_xor)
bitwise_invert = jitted(jnp.bitwise_not)
# XLA compares counts with the width as unsigned integers, so that negative ones are large.
bitwise_left_shift = jitted(jnp.left_shift)
bitwise_right_shift = jitted(jnp.right_shift)
count_ones = jitted(lax.population_count)
count_zeros = jitted(lambda x: lax.population_count(~x))
