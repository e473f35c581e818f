"""Neural networks, made of operations alone."""
