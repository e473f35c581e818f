"""A finding in the baseline that is no longer in the code.

## What it does

Reports an entry of the baseline file that matches no finding. An entry is checked only when its rule ran, and its file
was linted or no longer exists.

## Why

A stale entry would hide the same finding if it came back. Removing it means that a baseline can only shrink.

## Example

```json
{"version": 1, "findings": {"0f3a": {"code": "EMB102", "path": "model.py", "message": "fixed long ago"}}}
```

## Use instead

```json
{"version": 1, "findings": {}}
```

## Fix safety

Safe: `--fix`, or `emberlint baseline prune`, removes the entry from the baseline file. Code does not change.
"""

from emberlint.rules import Rule

RULE = Rule("EMB004", "stale-baseline-entry", "a finding in the baseline that is no longer in the code", fix="safe")
