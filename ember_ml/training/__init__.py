"""Training loop, metrics and callbacks, written with ``ops`` and ``transform`` alone."""

from typing import TYPE_CHECKING, Any

from ember_ml.spellings import accept, accept_in, unknown_name
from ember_ml.training.callbacks import Callback as Callback
from ember_ml.training.callbacks import Checkpoint as Checkpoint
from ember_ml.training.callbacks import CSVLogger as CSVLogger
from ember_ml.training.callbacks import EarlyStopping as EarlyStopping
from ember_ml.training.callbacks import FailOnNaN as FailOnNaN
from ember_ml.training.callbacks import LambdaCallback as LambdaCallback
from ember_ml.training.callbacks import LearningRateScheduler as LearningRateScheduler
from ember_ml.training.callbacks import ModelAverage as ModelAverage
from ember_ml.training.callbacks import ReduceLROnPlateau as ReduceLROnPlateau
from ember_ml.training.callbacks import TensorBoard as TensorBoard
from ember_ml.training.history import History as History
from ember_ml.training.loggers import MLflow as MLflow
from ember_ml.training.loggers import WandB as WandB
from ember_ml.training.metrics import AUC as AUC
from ember_ml.training.metrics import F1 as F1
from ember_ml.training.metrics import R2 as R2
from ember_ml.training.metrics import Accuracy as Accuracy
from ember_ml.training.metrics import BinaryAccuracy as BinaryAccuracy
from ember_ml.training.metrics import CategoricalAccuracy as CategoricalAccuracy
from ember_ml.training.metrics import MeanAbsoluteError as MeanAbsoluteError
from ember_ml.training.metrics import MeanSquaredError as MeanSquaredError
from ember_ml.training.metrics import Metric as Metric
from ember_ml.training.metrics import Precision as Precision
from ember_ml.training.metrics import Recall as Recall
from ember_ml.training.metrics import SparseCategoricalAccuracy as SparseCategoricalAccuracy
from ember_ml.training.metrics import TopKAccuracy as TopKAccuracy
from ember_ml.training.trainer import Trainer as Trainer

__all__ = [
    "AUC",
    "F1",
    "R2",
    "Accuracy",
    "BinaryAccuracy",
    "CSVLogger",
    "Callback",
    "CategoricalAccuracy",
    "Checkpoint",
    "EarlyStopping",
    "FailOnNaN",
    "History",
    "LambdaCallback",
    "LearningRateScheduler",
    "MLflow",
    "MeanAbsoluteError",
    "MeanSquaredError",
    "Metric",
    "ModelAverage",
    "Precision",
    "Recall",
    "ReduceLROnPlateau",
    "SparseCategoricalAccuracy",
    "TensorBoard",
    "TopKAccuracy",
    "Trainer",
    "WandB",
]

accept_in(vars(), __name__)
for _method in (Trainer.fit, Trainer.evaluate, Trainer.predict):
    setattr(Trainer, _method.__name__, accept(_method))


if not TYPE_CHECKING:  # hidden from type checkers, which would otherwise accept any name

    def __getattr__(name: str) -> Any:
        raise unknown_name(__name__, name, __all__)
