"""Layers."""

from legacy.nn.layers import Linear as Linear
