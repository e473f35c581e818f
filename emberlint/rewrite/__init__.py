"""From an engine's functions and methods to operations: the name, the arguments, and how safe the change is."""
