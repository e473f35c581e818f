"""A suppression that names no rule.

## What it does

Reports a code in a suppression that no rule has: a slip, or a rule that was renamed. So is `# emberlint: ignore` beside
a finding, which names none at all.

## Why

Such a comment silences nothing, while it looks as if it did.

## Example

```python
total = np.sum(x)  # noqa: EMB1002
```

## Use instead

```python
total = np.sum(x)  # noqa: EMB102
```

## Fix safety

There is no fix: what was meant is not known.
"""

from emberlint.rules import Rule

RULE = Rule("EMB003", "unknown-code", "a suppression that names no rule")
