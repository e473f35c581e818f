"""Tensor files, which the host reads and writes for every engine."""
