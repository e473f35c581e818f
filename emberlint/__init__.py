"""emberlint: the linter that keeps array code portable.

It reads code and runs none of it: the standard library's ``ast``, byte-span edits, no dependency. ``emberlint rules``
lists what it looks for, ``emberlint explain CODE`` prints a rule's page.
"""

__version__ = "0.1.0"
