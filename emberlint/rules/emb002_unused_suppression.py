"""A suppression that silences nothing.

## What it does

Reports a code in `# noqa: EMB102` or `# emberlint: ignore[EMB102]` for which nothing is reported on that line. Codes
of other tools, a bare `# noqa`, and codes of rules that do not run are let be.

## Why

A comment that outlives its reason hides the next finding on that line, and tells readers something untrue.

## Example

```python
total = ops.sum(x)  # noqa: EMB102
```

## Use instead

```python
total = ops.sum(x)
```

## Fix safety

Safe: the code is taken out of the comment, or the comment away if it was the only one. What runs does not change.
"""

from emberlint.rules import Rule

RULE = Rule("EMB002", "unused-suppression", "a suppression that silences nothing", fix="safe")
