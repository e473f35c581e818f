"""emberlint: a linter for portable array code.

It analyzes code without running it, and needs only the standard library. ``emberlint rules`` lists the rules,
``emberlint explain CODE`` prints the page of a rule.
"""

# The version of both packages: ember_ml and pyproject.toml read it here, where no other module is imported.
__version__ = "0.2.0"
