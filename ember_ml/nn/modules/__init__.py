"""Modules: the parts that networks are made of."""
