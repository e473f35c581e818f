"""A finding in the baseline that is no longer in the code.

## What it does

Reports an entry of the baseline file that nothing in the code answers to. An entry is judged only when its rule ran,
and its file was linted or is gone.

## Why

What is mended stays mended: the entry would let the same finding come back unseen. So a baseline can only shrink.

## Example

```json
{"version": 1, "findings": {"0f3a": {"code": "EMB102", "path": "model.py", "message": "mended long ago"}}}
```

## Use instead

```json
{"version": 1, "findings": {}}
```

## Fix safety

Safe: `--fix`, or `emberlint baseline prune`, takes the entry out of the baseline file. Code does not change.
"""

from emberlint.rules import Rule

RULE = Rule("EMB004", "stale-baseline-entry", "a finding in the baseline that is no longer in the code", fix="safe")
