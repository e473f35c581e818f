"""Feature scaling and principal components, fitted to data on any engine, with scikit-learn's interface."""

from typing import TYPE_CHECKING

from ember_ml import older_names as _older_names
from ember_ml.nn.features.decomposition import PCA as PCA
from ember_ml.nn.features.decomposition import Whitening as Whitening
from ember_ml.nn.features.decomposition import pca as pca
from ember_ml.nn.features.scaling import MinMaxScaler as MinMaxScaler
from ember_ml.nn.features.scaling import Normalizer as Normalizer
from ember_ml.nn.features.scaling import RobustScaler as RobustScaler
from ember_ml.nn.features.scaling import StandardScaler as StandardScaler
from ember_ml.nn.features.scaling import normalize_features as normalize_features
from ember_ml.nn.features.scaling import standardize_features as standardize_features
from ember_ml.nn.features.transformer import NotFittedError as NotFittedError
from ember_ml.nn.features.transformer import Transformer as Transformer
from ember_ml.nn.features.transformer import load as load
from ember_ml.ops import one_hot as one_hot
from ember_ml.ops import scatter as scatter
from ember_ml.spellings import accept_in

__all__ = [
    "PCA",
    "MinMaxScaler",
    "Normalizer",
    "NotFittedError",
    "RobustScaler",
    "StandardScaler",
    "Transformer",
    "Whitening",
    "load",
    "normalize_features",
    "one_hot",
    "pca",
    "scatter",
    "standardize_features",
]

_older_names.register(__name__)

if TYPE_CHECKING:
    Standardizer = StandardScaler
else:

    def __getattr__(name: str) -> object:
        return _older_names.attribute(__name__, name)


accept_in(vars(), __name__)
