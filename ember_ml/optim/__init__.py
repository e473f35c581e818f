"""Optimizers, learning-rate schedules and gradient clipping.

The update rule of an optimizer is written once with ``ops``, so that training gives the same result on every engine.
Fused implementations for an engine are in ``backend/<engine>/optim.py``.
"""

from typing import TYPE_CHECKING, Any

import ember_ml.optim.schedules as schedules
from ember_ml.optim.adafactor import Adafactor as Adafactor
from ember_ml.optim.adagrad import Adagrad as Adagrad
from ember_ml.optim.adam import Adam as Adam
from ember_ml.optim.adam import AdamW as AdamW
from ember_ml.optim.clipping import clip_by_global_norm as clip_by_global_norm
from ember_ml.optim.clipping import clip_by_norm as clip_by_norm
from ember_ml.optim.clipping import clip_by_value as clip_by_value
from ember_ml.optim.clipping import global_norm as global_norm
from ember_ml.optim.grouped import Grouped as Grouped
from ember_ml.optim.lion import Lion as Lion
from ember_ml.optim.muon import Muon as Muon
from ember_ml.optim.optimizer import Optimizer as Optimizer
from ember_ml.optim.rmsprop import RMSprop as RMSprop
from ember_ml.optim.sgd import SGD as SGD
from ember_ml.spellings import accept_in, unknown_name, value_hint

__all__ = [
    "SGD",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Grouped",
    "Lion",
    "Muon",
    "Optimizer",
    "RMSprop",
    "clip_by_global_norm",
    "clip_by_norm",
    "clip_by_value",
    "global_norm",
    "schedules",
]

accept_in(vars(), __name__)

# The modules have the names of optax's functions: ``optim.adam`` is to say that it is ``optim.Adam``.
for _module in ("adafactor", "adagrad", "adam", "lion", "muon", "rmsprop", "sgd"):
    del globals()[_module]

_NAMES: dict[str, type[Optimizer]] = {
    one.__name__.lower(): one for one in (SGD, Adafactor, Adagrad, Adam, AdamW, Lion, Muon, RMSprop)
}


def get_optimizer(optimizer: str | Optimizer) -> Optimizer:
    """Optimizer from its name, with its default options; an instance of ``Optimizer`` is returned unchanged.

    >>> get_optimizer("sgd")
    SGD(learning_rate=0.01, momentum=0.0, nesterov=False, dampening=0.0, weight_decay=0.0)
    """
    if not isinstance(optimizer, str):
        return optimizer
    made: Any = _NAMES.get(optimizer.lower())
    if made is None:
        hint = value_hint(optimizer, _NAMES)
        raise ValueError(
            f"Trainer: optimizer must be an Optimizer or one of {', '.join(_NAMES)}, got {optimizer!r}{hint}"
        )
    return made()  # type: ignore[no-any-return]


if not TYPE_CHECKING:  # hidden from type checkers, which would otherwise accept any name

    def __getattr__(name: str) -> Any:
        raise unknown_name(__name__, name, __all__)
