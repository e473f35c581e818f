"""A file that Python cannot parse.

## What it does

Reports a file that does not parse, with Python's message and its location.

## Why

No other rule can run on such a file. It is the only finding that a comment cannot suppress.

## Example

```python
def mean(x:
    return x
```

## Use instead

```python
def mean(x):
    return x
```

## Fix safety

There is no fix.
"""

from emberlint.rules import Rule

RULE = Rule("EMB001", "parse-error", "a file that Python cannot parse")
