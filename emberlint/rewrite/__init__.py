"""Rewriting of an engine's functions and methods to operations: names, arguments, and safety of the change."""
