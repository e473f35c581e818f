"""What is known not to hold, each with its reason. This list may only shrink.

Keys are ``(check, operation, engine)``: the name of a test function in test_contract.py, an operation, an engine. An
entry whose check passes is itself a failure, so that nothing stays here longer than it is true.
"""

from __future__ import annotations

EXCEPTIONS: dict[tuple[str, str, str], str] = {}
