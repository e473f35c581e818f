"""How random numbers are made: bits from a key (``threefry.py``), and distributions from bits (``sampling.py``).

The functions that draw them are in ``ember_ml.ops.random``.
"""
