"""Small programs that tests port."""

from __future__ import annotations

import textwrap

from emberlint.commands import port
from emberlint.config import EMBER_TENSORS, Config

CONFIG = Config(namespace=EMBER_TENSORS)


def ported(text: str, config: Config = CONFIG, *, imports: str = "") -> port.Ported:
    """A ported program, which a second port leaves as it is; ``imports`` are lines before the text."""
    data = (imports + textwrap.dedent(text)).encode()
    done = port.ported(data, "program.py", "numpy", config)
    assert port.ported(done.after, "program.py", "numpy", config).after == done.after
    return done
