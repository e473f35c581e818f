"""A finding in the baseline that is no longer in the code.

## What it does

Reports an entry of the baseline file that matches no finding. An entry is checked only when its rule ran, and its file
was linted or no longer exists.

## Why

A stale entry would hide the same finding if it came back. Removing it means that a baseline can only shrink.

## Example

`pyproject.toml`:

```toml
[tool.emberlint]
baseline = "emberlint-baseline.json"
```

`emberlint-baseline.json`:

```json
{"version": 1, "findings": {"0f3a": {"code": "EMB102", "path": "model.py", "message": "fixed long ago"}}}
```

`model.py`:

```python
from ember_ml import ops


def spread(x):
    return ops.max(x) - ops.min(x)
```

## Use instead

`emberlint-baseline.json`:

```json
{"version": 1, "findings": {}}
```

`model.py`:

```python
from ember_ml import ops


def spread(x):
    return ops.max(x) - ops.min(x)
```

## Fix safety

Safe: `--fix`, or `emberlint baseline prune`, removes the entry from the baseline file. Code does not change.
"""

from emberlint.rules import Rule

RULE = Rule("EMB004", "stale-baseline-entry", "a finding in the baseline that is no longer in the code", fix="safe")
