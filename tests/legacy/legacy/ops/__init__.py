"""The functions of the engine that is active when the package is imported."""

from ember_ml import get_backend

BACKEND = get_backend()

# The order matters: the statistics import functions of this package.
if BACKEND == "torch":
    from legacy.ops.torch import logsumexp
    from legacy.ops.torch.math import add, clip, divide
    from legacy.ops.torch.stats import mean, standardize, variance
elif BACKEND == "mlx":
    from .mlx.math import add, clip, divide, logsumexp
    from .mlx.stats import mean, standardize, variance
elif BACKEND == "numpy":
    from legacy.ops.numpy.math import add, clip, divide, logsumexp
    from legacy.ops.numpy.stats import mean, standardize, variance
else:
    raise ImportError(f"no functions for {BACKEND}")

from legacy.ops.activations import relu, softmax, swish  # noqa: E402

__all__ = [
    "add",
    "clip",
    "divide",
    "logsumexp",
    "mean",
    "relu",
    "softmax",
    "standardize",
    "swish",
    "variance",
]
