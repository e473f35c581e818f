"""The documentation site: ``PYTHONPATH=docs python -m _site build/docs`` builds it, as ``make docs`` does.

``inventory.py`` lists what has a page. ``examples.py`` runs the examples of docstrings on every installed engine, a
process each. ``operations.py``, ``classes.py`` and ``rules.py`` write the pages of operations, of other classes and
functions, and of the rules of emberlint. ``staging.py`` adapts the pages of ``docs/`` and gathers everything in one
folder, from which Sphinx (``conf.py``) builds the HTML. ``links.py`` looks for dead links, in Markdown and in HTML.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
