"""A suppression that suppresses nothing.

## What it does

Reports a code in `# noqa: EMB102` or `# emberlint: ignore[EMB102]` for which nothing is reported on that line. Codes of
other tools, a bare `# noqa` and codes of rules that do not run are ignored.

## Why

A comment that outlives its reason hides the next finding on that line, and misleads readers.

## Example

```python
from ember_ml import ops

total = ops.sum(ops.arange(10))  # noqa: EMB102
```

## Use instead

```python
from ember_ml import ops

total = ops.sum(ops.arange(10))
```

## Fix safety

Safe: the code is removed from the comment, or the whole comment if it was the only code. The program does not change.
"""

from emberlint.rules import Rule

RULE = Rule("EMB002", "unused-suppression", "a suppression that suppresses nothing", fix="safe")
