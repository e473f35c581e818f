"""Activations: each function chooses the engine when it is called."""

from ember_ml import get_backend


def relu(x):
    """``x`` where it is positive, else zero."""
    if get_backend() == "torch":
        from legacy.ops.torch.activations import relu as chosen
    elif get_backend() == "mlx":
        from legacy.ops.mlx.activations import relu as chosen
    else:
        from legacy.ops.numpy.activations import relu as chosen
    return chosen(x)


def softmax(x, axis=-1):
    """Exponentials of ``x`` that sum to one along an axis."""
    backend = get_backend()
    if backend == "torch":
        from legacy.ops.torch.activations import softmax as chosen

        return chosen(x, axis)
    if backend == "mlx":
        from legacy.ops.mlx.activations import softmax as chosen

        return chosen(x, axis)
    from legacy.ops.numpy.activations import softmax as chosen

    return chosen(x, axis)


def swish(x):
    """``x`` times its logistic function."""
    if get_backend() == "torch":
        from legacy.ops.torch.activations import swish as chosen
    elif get_backend() == "numpy":
        from legacy.ops.numpy.activations import swish as chosen
    else:
        raise NotImplementedError(f"swish is not written for {get_backend()}")
    return chosen(x)
