"""One pass over a file, in which names are resolved, values get types, and rules are shown each node.

``traversal`` visits the module and then the functions that are worth it (``interest``). ``visitors`` has a table of
statements, which ``statements``, ``blocks``, ``functions`` and ``classes`` fill, and one of expressions, which
``expressions`` and ``calls`` fill. ``targets``, ``conditions`` and ``annotations`` say what targets, conditions and
annotations tell, ``parameters`` what can be told of a function's parameters, ``results`` what operators return.
"""
