"""emberlint: a linter for portable array code.

It analyzes code without running it, and needs only the standard library. ``emberlint rules`` lists the rules,
``emberlint explain CODE`` prints the page of a rule.
"""

__version__ = "0.1.0"
