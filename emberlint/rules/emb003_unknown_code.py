"""A suppression that does not name a rule.

## What it does

Reports a code in a suppression that no rule has, such as a typo or a renamed rule. Also reports `# emberlint: ignore`
without a code on a line with a finding.

## Why

The comment suppresses nothing but looks as if it did.

## Example

```python
import numpy as np

total = np.sum(np.arange(10))  # noqa: EMB1002
```

## Use instead

```python
import numpy as np

total = np.sum(np.arange(10))  # noqa: EMB102
```

## Fix safety

There is no fix: the intended code is not known.
"""

from emberlint.rules import Rule

RULE = Rule("EMB003", "unknown-code", "a suppression that does not name a rule")
