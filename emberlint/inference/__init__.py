"""One pass over a file that resolves names, infers the types of values and runs the checks of rules on each node.

``traversal`` visits the module and then the relevant functions (``interest``). ``visitors`` has a table of statements,
which ``statements``, ``blocks``, ``functions`` and ``classes`` fill, and a table of expressions, which ``expressions``
and ``calls`` fill. ``targets``, ``conditions``, ``annotations`` and ``parameters`` infer values from assignments,
conditions, annotations and the use of parameters; ``results`` infers the values of operators and calls.
"""
