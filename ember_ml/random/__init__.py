"""Random number generation: random bits from a key (``threefry.py``), and distributions from bits (``sampling.py``).

The public functions are in ``ember_ml.ops.random``.
"""
