"""Optimizers, learning-rate schedules and gradient clipping.

The update rule of an optimizer is written once with ``ops``, so that training gives the same result on every engine.
Fused implementations for an engine are in ``backend/<engine>/optim.py``.
"""

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
