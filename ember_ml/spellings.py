"""What users of NumPy, torch, Keras and JAX write by habit, and what it is called here.

``accept`` lets a function take options of ``ACCEPTED``, which cannot be misread, besides its own. Everything else that
is not known raises an error that says what to write: from ``MEANT``, ``NOTES`` and ``NAMES``, or the nearest name. The
tables are read only when a name is not known.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import wraps
from inspect import CO_VARKEYWORDS, unwrap
from opcode import opmap
from types import FrameType
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

# Options that layers, optimizers, schedules, metrics, callbacks, initializers and ``Trainer`` accept for their own, the
# first of those listed that the function has. ``Dropout.rate`` is an option of that class or function alone; the
# elements of a pair are those of the options that are joined by ``+``.
ACCEPTED: dict[str, tuple[str, ...]] = {
    "adjust_lr_fn": ("Muon.adjust",),
    "alpha": ("LeakyReLU.negative_slope", "RMSprop.rho"),
    "b1": ("beta_1",),
    "b2": ("beta_2",),
    "beta1": ("beta_1",),
    "beta2": ("beta_2",),
    "beta2_decay": ("beta_2_decay",),
    "betas": ("beta_1+beta_2",),
    "bias_initializer": ("bias_init",),
    "clipvalue": ("clip_value",),
    "criterion": ("Trainer.loss",),
    "d": ("Adafactor.clip_threshold",),
    "d_model": ("MultiHeadAttention.embed_dim",),
    "decay_steps": ("cosine.steps",),
    "dilation": ("dilation_rate",),
    "dim": ("axis",),
    "dirpath": ("Checkpoint.directory",),
    "elementwise_affine": ("affine",),
    "embed_dim": ("d_model",),
    "embeddings_initializer": ("weight_init",),
    "eps": ("epsilon", "Adafactor.eps_1+eps_2"),
    "epsilon": ("eps",),
    "eta_min": ("cosine.end",),
    "filename": ("CSVLogger.path",),
    "filters": ("out_channels",),
    "global_clipnorm": ("clip_norm",),
    "groups": ("GroupNorm.num_groups",),
    "initial_accumulator_value": ("initial_accumulator",),
    "initial_learning_rate": ("constant.rate", "step.rate", "exponential.rate", "cosine.rate"),
    "input_dim": ("Embedding.num_embeddings",),
    "keepdim": ("keepdims",),
    "kernel_initializer": ("weight_init",),
    "kernel_size": ("pool_size",),
    "lambd": ("threshold",),
    "layer_norm_eps": ("epsilon",),
    "log_dir": ("TensorBoard.directory",),
    "loss_fn": ("Trainer.loss",),
    "lr": ("learning_rate",),
    "lr_decay": ("rate_decay",),
    "max_epochs": ("epochs",),
    "max_lr": ("one_cycle.peak",),
    "maxval": ("high",),
    "min_delta": ("EarlyStopping.least", "ReduceLROnPlateau.least"),
    "minval": ("low",),
    "mode": ("Upsample.interpolation",),
    "n_heads": ("num_heads",),
    "n_layers": ("num_layers",),
    "nhead": ("num_heads",),
    "nonlinearity": ("RNNCell.activation",),
    "ns_coefficients": ("coefficients",),
    "ns_steps": ("Muon.steps",),
    "num_classes": ("classes",),
    "num_epochs": ("epochs",),
    "output_dim": ("Embedding.embedding_dim",),
    "p": ("Dropout.rate",),
    "pct_start": ("one_cycle.rise",),
    "requires_grad": ("Parameter.trainable",),
    "restore_best_weights": ("restore_best",),
    "scale_factor": ("Upsample.scale",),
    "start_dim": ("Flatten.start",),
    "std": ("stddev",),
    "stride": ("strides",),
    "strides": ("stride",),
    "target_shape": ("Reshape.shape",),
    "total_steps": ("one_cycle.steps",),
    "units": ("Linear.out_features", "hidden_size"),
    "use_bias": ("bias",),
}

# Options that are refused, in operations together with those above, and the parameters that are probably meant.
MEANT: dict[str, tuple[str, ...]] = {
    "A": ("x", "x1", "a"),
    "B": ("x2", "b"),
    "N": ("n",),
    "a": ("x", "x1", "low"),
    "a_max": ("max",),
    "a_min": ("min",),
    "array": ("x", "obj"),
    "attention_mask": ("mask",),
    "attn_mask": ("mask",),
    "axes": ("axis",),
    "axis": ("axes",),
    "b": ("y", "x2", "high"),
    "boundaries": ("bins",),
    "center": ("affine",),
    "chunks": ("indices_or_sections",),
    "clipnorm": ("clip_norm",),
    "d_ff": ("dim_feedforward",),
    "data": ("obj", "value", "x"),
    "ddof": ("correction",),
    "decay": ("weight_decay",),
    "decay_rate": ("factor",),
    "default_value": ("default",),
    "depth": ("num_classes",),
    "diagonal": ("k", "offset"),
    "dim": ("axis", "axes"),
    "dim0": ("axis1",),
    "dim1": ("axis2", "axis1"),
    "dim2": ("axis2",),
    "dims": ("axes", "axis"),
    "div_factor": ("start_factor",),
    "drop_rate": ("dropout", "rate"),
    "dropout_rate": ("dropout", "rate"),
    "embedding_size": ("embedding_dim",),
    "end": ("stop",),
    "every_n_epochs": ("every",),
    "every_n_train_steps": ("every",),
    "feature_group_count": ("groups",),
    "filepath": ("directory", "path"),
    "final_div_factor": ("end_factor",),
    "gamma": ("factor",),
    "generator": ("key",),
    "hidden_dim": ("hidden_size", "dim_feedforward"),
    "hidden_units": ("hidden_size", "out_features"),
    "in_dim": ("in_features",),
    "index": ("indices",),
    "init_value": ("rate", "start"),
    "initial_epoch": ("resume",),
    "input": ("x", "y_pred", "obj", "images", "query", "arrays", "x1", "a"),
    "inputs": ("x", "images"),
    "input_dim": ("in_features", "input_size"),
    "input_features": ("in_features",),
    "input_shape": ("in_features", "in_channels", "input_size"),
    "intermediate_dim": ("dim_feedforward",),
    "kernel": ("kernel_size",),
    "key_dim": ("embed_dim",),
    "log_every_n_steps": ("every",),
    "max_to_keep": ("keep",),
    "mu": ("mean",),
    "n_classes": ("num_classes", "classes"),
    "n_epochs": ("epochs",),
    "nb_epoch": ("epochs",),
    "num_samples": ("shape",),
    "object": ("obj",),
    "ord": ("order",),
    "other": ("y", "x2"),
    "output_features": ("out_features",),
    "p": ("ord", "order"),
    "patch_size": ("size",),
    "pred": ("y_pred", "condition"),
    "prob": ("p", "rate"),
    "probability": ("p", "rate"),
    "probs": ("p",),
    "repeats": ("repetitions",),
    "reps": ("repetitions",),
    "rng": ("key",),
    "run_eagerly": ("compile",),
    "save_best_only": ("monitor",),
    "save_top_k": ("keep",),
    "seed": ("key",),
    "shifts": ("shift",),
    "sigma": ("stddev",),
    "size": ("shape", "scale"),
    "split_size_or_sections": ("indices_or_sections",),
    "src": ("updates",),
    "start": ("low",),
    "steps": ("num",),
    "target": ("y_true",),
    "tensor": ("x",),
    "tensors": ("arrays",),
    "thresholds": ("threshold",),
    "transition_steps": ("steps",),
    "unbiased": ("correction",),
    "val_data": ("validation_data",),
    "validation_set": ("validation_data",),
    "value": ("fill_value", "constant_values", "values", "updates"),
    "vec2": ("x2",),
    "mat2": ("x2",),
    "warmup_steps": ("steps",),
    "weight": ("kernel", "scale", "sample_weight", "weights"),
    "weights": ("sample_weight",),
}

# What to do instead of giving an option that no parameter stands for, also of one function alone.
NOTES: dict[str, str] = {
    "T_max": "did you mean steps=, which counts optimizer steps: T_max * len(loader)",
    "activation": "write an activation after the layer, such as nn.ReLU()",
    "add.alpha": "multiply by it first: ops.add(x, ops.multiply(alpha, y))",
    "align_corners": "leave it out; corners are not aligned, as with align_corners=False",
    "batch_first": "the first axis is always the batch; leave it out",
    "class_weight": "did you mean sample_weight=, a weight for each example",
    "device": "move tensors with ops.to_device, and modules with to(device)",
    "fit.callbacks": "did you mean Trainer(..., callbacks=)",
    "fit.metrics": "did you mean Trainer(..., metrics=)",
    "fit.optimizer": "did you mean Trainer(..., optimizer=)",
    "flatten.end_dim": "did you mean ops.reshape",
    "flatten.start_dim": "did you mean nn.Flatten(), which keeps the batch, or ops.reshape",
    "foreach": "leave it out",
    "fused": "leave it out; fused updates are used where an engine has them",
    "ignore_index": "did you mean reduction='none', and a mask",
    "inplace": "leave it out; nothing is changed in place",
    "maximize": "negate the loss",
    "nan_policy": "did you mean ops.nanmean, or another operation whose name begins with nan",
    "out": "use the result instead; nothing is written in place",
    "padding_idx": "leave it out, and mask what padding gives",
    "params": "pass the parameters to update",
    "rounding_mode": "did you mean ops.floor_divide, or ops.trunc of the quotient",
    "sparse_categorical_crossentropy.weight": "did you mean reduction='none', and a factor for each example",
    "step_size": "did you mean every=, which counts optimizer steps: step_size * len(loader)",
    "sub.alpha": "multiply by it first: ops.subtract(x, ops.multiply(alpha, y))",
    "subtract.alpha": "multiply by it first: ops.subtract(x, ops.multiply(alpha, y))",
}

# What to do if an option was given by position and by name, and the first is no number.
_POSITIONAL = {"learning_rate": f"; {NOTES['params']}"}

# Names that modules do not have, and the name that is meant, followed by what must be known of it. Those of operations
# are in ``ember_ml.ops.aliases``.
NAMES: dict[str, str] = {
    "nn.Activation": "nn.ReLU, a class for each activation",
    "nn.AdaptiveAvgPool1d": "nn.AdaptiveAveragePool",
    "nn.AdaptiveAvgPool2d": "nn.AdaptiveAveragePool",
    "nn.AdaptiveAvgPool3d": "nn.AdaptiveAveragePool",
    "nn.AdaptiveMaxPool1d": "nn.AdaptiveMaxPool",
    "nn.AdaptiveMaxPool2d": "nn.AdaptiveMaxPool",
    "nn.AdaptiveMaxPool3d": "nn.AdaptiveMaxPool",
    "nn.AvgPool1d": "nn.AveragePool1d, which excludes padding from its means",
    "nn.AvgPool2d": "nn.AveragePool2d, which excludes padding from its means",
    "nn.AvgPool3d": "nn.AveragePool3d, which excludes padding from its means",
    "nn.BCELoss": "ops.binary_crossentropy",
    "nn.BCEWithLogitsLoss": "ops.binary_crossentropy with from_logits=True",
    "nn.BatchNorm1d": "nn.BatchNorm, whose axis= is the channel axis, the last one by default",
    "nn.BatchNorm2d": "nn.BatchNorm, whose axis= is the channel axis, the last one by default",
    "nn.BatchNorm3d": "nn.BatchNorm, whose axis= is the channel axis, the last one by default",
    "nn.BatchNormalization": "nn.BatchNorm, whose momentum= is 1 minus the momentum of Keras",
    "nn.Bidirectional": "nn.LSTM with bidirectional=True",
    "nn.CTCLoss": "ops.ctc_loss",
    "nn.Conv1D": "nn.Conv1d, whose first argument is in_channels",
    "nn.Conv2D": "nn.Conv2d, whose first argument is in_channels",
    "nn.Conv2DTranspose": "nn.ConvTranspose2d, whose first argument is in_channels",
    "nn.Conv3D": "nn.Conv3d, whose first argument is in_channels",
    "nn.CosineEmbeddingLoss": "ops.cosine_similarity_loss, target first, for pairs with the label 1; it has no margin",
    "nn.CosineSimilarity": "ops.cosine_similarity",
    "nn.CrossEntropyLoss": (
        "ops.sparse_categorical_crossentropy with from_logits=True, target first, and axis=1 for logits of torch's "
        'layout; for ignore_index= and weight=, use reduction="none" and a mask or weights'
    ),
    "nn.GroupNormalization": "nn.GroupNorm",
    "nn.HuberLoss": "ops.huber_loss",
    "nn.InstanceNorm2d": "nn.GroupNorm with a group for each channel",
    "nn.KLDivLoss": 'ops.kl_divergence, which takes probabilities, target first, and is reduction="batchmean"',
    "nn.L1Loss": "ops.mean_absolute_error",
    "nn.LayerNormalization": "nn.LayerNorm, whose first argument is normalized_shape",
    "nn.LazyLinear": "nn.Linear",
    "nn.MSELoss": "ops.mean_squared_error",
    "nn.Model": "nn.Module",
    "nn.MultiheadAttention": "nn.MultiHeadAttention, whose first axis is the batch",
    "nn.NLLLoss": "ops.sparse_categorical_crossentropy with from_logits=True, which takes log-probabilities too",
    "nn.PixelShuffle": "ops.depth_to_space, which orders the channels of a block in another way",
    "nn.SimpleRNN": "nn.RNN, whose first argument is input_size",
    "nn.SmoothL1Loss": "ops.huber_loss with delta=beta, target first, divided by beta",
    "nn.Transformer": "nn.TransformerEncoder",
    "nn.TripletMarginLoss": "ops.triplet_loss",
    "nn.UpSampling2D": "nn.Upsample",
    "nn.Unflatten": "nn.Reshape",
    "nn.UpsamplingNearest2d": "nn.Upsample",
    "nn.functional": "ops",
    "nn.init": "nn.initializers",
    "nn.initializers.HeNormal": "nn.initializers.he_normal",
    "nn.initializers.RandomNormal": "nn.initializers.normal",
    "nn.initializers.kaiming_normal_": "nn.initializers.he_normal, which returns a tensor",
    "nn.initializers.kaiming_uniform_": "nn.initializers.he_uniform, which returns a tensor",
    "nn.initializers.xavier_normal_": "nn.initializers.glorot_normal, which returns a tensor",
    "nn.initializers.xavier_uniform_": "nn.initializers.glorot_uniform, which returns a tensor",
    "nn.layers": "nn.modules",
    "nn.utils": "optim.clip_by_global_norm, if gradients are to be clipped",
    "optim.CosineAnnealingLR": "optim.schedules.cosine, whose steps= counts optimizer steps",
    "optim.clip_grad_norm_": "optim.clip_by_global_norm, which returns the gradients",
    "optim.lr_scheduler": "optim.schedules",
    "optim.schedules.CosineAnnealingLR": "optim.schedules.cosine, whose steps= counts optimizer steps",
    "optim.schedules.CosineDecay": "optim.schedules.cosine",
    "optim.schedules.ExponentialDecay": "optim.schedules.exponential",
    "optim.schedules.ExponentialLR": "optim.schedules.exponential, whose factor= applies to every optimizer step",
    "optim.schedules.LambdaLR": "optim.Optimizer, which takes a function of the number of the step as learning_rate=",
    "optim.schedules.LinearLR": "optim.schedules.linear, whose steps= counts optimizer steps",
    "optim.schedules.OneCycleLR": "optim.schedules.one_cycle",
    "optim.schedules.SequentialLR": "optim.schedules.joined",
    "optim.schedules.StepLR": "optim.schedules.step, whose every= counts optimizer steps",
    "optim.schedules.cosine_decay_schedule": "optim.schedules.cosine",
    "training.AUROC": "training.AUC",
    "training.BackupAndRestore": "training.Checkpoint",
    "training.F1Score": "training.F1",
    "training.Model": "training.Trainer",
    "training.ModelCheckpoint": "training.Checkpoint, whose first argument is a directory",
    "training.R2Score": "training.R2",
    "training.RootMeanSquaredError": "training.MeanSquaredError",
    "training.TerminateOnNaN": "training.FailOnNaN",
    "training.TopKCategoricalAccuracy": "training.TopKAccuracy",
    "Tensor": "nn.tensor.EmberTensor",
    "Trainer": "training.Trainer",
    "device": "ops.set_default_device",
    "jit": "compile",
    "layers": "nn",
    "losses": "ops",
    "metrics": "training",
    "no_grad": "stop_gradient for a tensor, and nothing for a model, whose calls are not recorded",
    "optimizers": "optim",
}

# Names of initializers, metrics and losses that are accepted for ours.
VALUES: dict[str, tuple[str, ...]] = {
    "acc": ("accuracy",),
    "auroc": ("auc",),
    "f1_score": ("f1",),
    "hinge": ("hinge_loss",),
    "huber": ("huber_loss",),
    "kaiming_normal": ("he_normal",),
    "kaiming_uniform": ("he_uniform",),
    "kld": ("kl_divergence",),
    "log_cosh": ("log_cosh_loss",),
    "mean_absolute_error": ("mae",),
    "mean_squared_error": ("mse",),
    "r2_score": ("r2",),
    "random_normal": ("normal",),
    "random_uniform": ("uniform",),
    "roc_auc": ("auc",),
    "xavier_normal": ("glorot_normal",),
    "xavier_uniform": ("glorot_uniform",),
}

# Names of the same kind, and of dtypes, that are refused, and those that are probably meant.
_MEANT_VALUES: dict[str, tuple[str, ...]] = {
    "BCELoss": ("binary_crossentropy",),
    "BCEWithLogitsLoss": ("binary_crossentropy",),
    "CrossEntropyLoss": ("sparse_categorical_crossentropy",),
    "KLDivLoss": ("kl_divergence",),
    "NLLLoss": ("sparse_categorical_crossentropy",),
    "SmoothL1Loss": ("huber_loss",),
    "bce": ("binary_crossentropy",),
    "cosine_similarity": ("cosine_similarity_loss",),
    "cross_entropy": ("sparse_categorical_crossentropy",),
    "crossentropy": ("sparse_categorical_crossentropy",),
    "nll_loss": ("sparse_categorical_crossentropy",),
    "glorot": ("glorot_uniform",),
    "he": ("he_normal",),
    "kaiming": ("he_uniform",),
    "double": ("float64",),
    "half": ("float16",),
    "long": ("int64",),
    "rmse": ("mse",),
    "top_k_categorical_accuracy": ("top_k_accuracy",),
    "xavier": ("glorot_uniform",),
}


def accept(function: Callable[P, R], /) -> Callable[P, R]:
    """``function``, which takes the options of ``ACCEPTED`` besides its own, and explains those that it does not know.

    Its signature, as ``inspect`` and type checkers see it, stays the same.

    >>> @accept
    ... def layer(size, *, epsilon=1e-5):
    ...     return size, epsilon
    >>> layer(2, eps=0.5)
    (2, 0.5)
    >>> layer(2, sise=3)
    Traceback (most recent call last):
    TypeError: layer: unknown option 'sise'; did you mean size=
    """
    code = unwrap(function).__code__
    named = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    is_method = named[:1] == ("self",)
    known = frozenset(named[code.co_posonlyargcount + is_method :])
    is_open = bool(code.co_flags & CO_VARKEYWORDS)
    positional = named[: code.co_argcount]

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if not known.issuperset(kwargs):
            if function.__name__ == "__init__":
                owners = [owner.__name__ for owner in type(args[0]).__mro__]
            else:
                owners = [function.__name__]
            options = [name for name in named if name in known]
            by_position = dict(zip(positional, args, strict=False))
            kwargs = rename(owners, kwargs, options, by_position, is_open)  # type: ignore[assignment]
            if is_open:
                return _blamed(owners[0], options, function, args, kwargs)  # type: ignore[no-any-return]
        return function(*args, **kwargs)

    return call


def _blamed(owner: str, options: list[str], function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Result of ``function``; if it passes on an option that is not known there, the error is that of ``owner``."""
    try:
        return function(*args, **kwargs)
    except TypeError as error:
        option, further = error.__dict__.get("_ember_option", (None, ()))
        if option not in kwargs:
            raise
        raise unknown_option(owner, option, list(dict.fromkeys([*options, *further]))) from None


def accept_in(names: Mapping[str, Any], package: str) -> None:
    """Let the classes among ``names`` that are of ``package`` accept the options of ``ACCEPTED``; see ``accept``."""
    for value in names.values():
        for owner in value.__mro__ if isinstance(value, type) else ():
            init: Any = vars(owner).get("__init__")
            if owner.__module__.startswith(package) and hasattr(init, "__code__") and not hasattr(init, "__wrapped__"):
                setattr(owner, "__init__", accept(init))  # noqa: B010 - mypy refuses the assignment


def rename(
    owners: list[str],
    given: Mapping[str, Any],
    options: Collection[str],
    by_position: Mapping[str, Any] | None = None,
    is_open: bool = False,
) -> dict[str, Any]:
    """The options that were ``given``, under the names of a function that has ``options``.

    Args:
        owners: the name of the function, or of a class and its base classes.
        by_position: the options that were given by position.
        is_open: whether the function takes further options, which it passes on.
    """
    found: dict[str, Any] = {}
    for name, value in given.items():
        own = (name,) if name in options else _accepted(owners, name, options)
        if own is None and not is_open:
            raise unknown_option(owners[0], name, options)
        for one, part in _parts(owners[0], name, value, own or (name,)):
            if by_position is not None and one in by_position:
                kind = type(by_position[one]).__name__
                hint = "" if isinstance(by_position[one], (float, int, str)) else _POSITIONAL.get(one, "")
                raise TypeError(
                    f"{owners[0]}: {one} must be given once, got {kind} by position and {name}={value!r}{hint}"
                )
            if one in found or (one != name and one in given):
                raise TypeError(f"{owners[0]}: {one} must be given once, got it also as {name}={value!r}")
            found[one] = part
    return found


def _parts(owner: str, name: str, value: Any, options: tuple[str, ...]) -> list[tuple[str, Any]]:
    """Pairs of an option and its value, which is an element of ``value`` if that stands for several options."""
    if len(options) == 1:
        return [(options[0], value)]
    if not isinstance(value, (list, tuple)) or len(value) != len(options):
        raise TypeError(f"{owner}: {name} must be a tuple ({', '.join(options)}), got {value!r}")
    return list(zip(options, value, strict=True))


def unknown_option(owner: str, option: str, options: Collection[str], operands: Collection[str] = ()) -> TypeError:
    """The error for an option that a function does not have.

    Args:
        owner: the name of the function.
        options: the options that it has.
        operands: its parameters that are given by position.

    >>> print(unknown_option("sum", "dim", ["axis", "keepdims"], ["x"]))
    sum: unknown option 'dim'; did you mean axis=
    """
    habits = [*(entry.rpartition(".")[2] for entry in ACCEPTED.get(option, ())), *MEANT.get(option, ())]
    known, note = [*options, *operands], NOTES.get(f"{owner}.{option}", NOTES.get(option))
    meant = next((name for name in habits if name in known), None) or (None if note else nearest(option, known))
    if meant in operands:
        hint = f"did you mean {meant}, which is given by position"
    elif meant is not None:
        hint = f"did you mean {meant}="
    else:
        hint = note or (f"the options are {', '.join(options)}" if options else "it has no options")
    error = TypeError(f"{owner}: unknown option {option!r}; {hint}")
    error._ember_option = (option, tuple(options))  # type: ignore[attr-defined]
    return error


def unknown_name(
    module: str, name: str, known: Iterable[str], meant: str | None = None
) -> AttributeError | ImportError:
    """The error for a name that a module does not have, for its ``__getattr__`` to raise.

    Args:
        known: the names that it has.
        meant: what ``name`` means, if the caller knows it.

    >>> print(unknown_name("ember_ml.optim", "adam", ["Adam", "SGD"]))
    module 'ember_ml.optim' has no attribute 'adam'; did you mean optim.Adam?
    """
    message = f"module {module!r} has no attribute {name!r}"
    if name.startswith("_"):
        return AttributeError(message)
    package = module.partition(".")[2].removesuffix(".modules")
    meant = meant or NAMES.get(f"{package}.{name}".lstrip("."))
    if meant is None:
        near = nearest(name, known)
        meant = near and f"{package}.{near}".lstrip(".")
    hint = f"; did you mean {meant}?" if meant else ""
    if hint and f"{module}.{name}" not in sys.modules and _is_importing(sys._getframe(2)):
        # Python replaces an AttributeError by an error without a hint.
        return ImportError(f"cannot import name {name!r} from {module!r}{hint}", name=module)
    # With a name but no object, Python adds no suggestion of its own.
    return AttributeError(f"{message}{hint}", name=name)


_ZERO_GRAD = "leave it out: value_and_grad returns the gradients, which optimizer.update(model, gradients) takes"

# Attributes that optimizers of torch have, and what to write instead.
OF_OPTIMIZERS = {
    "add_param_group": "did you mean optim.Grouped",
    "load_state_dict": "did you mean optimizer.assign, which takes the dictionary of optimizer.tensors()",
    "param_groups": "did you mean optimizer.learning_rate, or optim.Grouped for several groups",
    "state_dict": "did you mean optimizer.tensors(), which optimizer.assign takes",
    "zero_grad": _ZERO_GRAD,
}
# The same for modules of torch and models of Keras.
OF_MODULES = {
    "add": "did you mean model.append",
    "apply": "write a loop over model.modules()",
    "bfloat16": "did you mean model.astype('bfloat16')",
    "compile": "did you mean ember_ml.compile, or training.Trainer(model, loss, optimizer)",
    "cpu": "did you mean model.to('cpu')",
    "cuda": "did you mean model.to('cuda')",
    "double": "did you mean model.astype('float64')",
    "evaluate": "did you mean training.Trainer(model, loss, optimizer).evaluate",
    "fit": "did you mean training.Trainer(model, loss, optimizer).fit",
    "float": "did you mean model.astype('float32')",
    "get_weights": "did you mean model.state_dict",
    "half": "did you mean model.astype('float16')",
    "load_weights": "did you mean model.load",
    "named_buffers": "did you mean model.buffers().items()",
    "named_children": "did you mean model.children().items()",
    "predict": "did you mean training.Trainer(model, loss, optimizer).predict",
    "register_buffer": "assign nn.Buffer(x) to an attribute",
    "register_forward_hook": "call the module in the forward of another one",
    "register_parameter": "assign nn.Parameter(x) to an attribute",
    "save_weights": "did you mean model.save",
    "set_weights": "did you mean model.load_state_dict",
    "trainable_variables": "did you mean model.parameters()",
    "zero_grad": _ZERO_GRAD,
}


def unknown_attribute(value: object, name: str, hints: Mapping[str, str]) -> AttributeError:
    """The error for an attribute that a value does not have, for its ``__getattr__`` to raise."""
    message = f"{type(value).__name__!r} object has no attribute {name!r}"
    if name in hints:
        return AttributeError(f"{message}; {hints[name]}")
    # torch 2.13: the compiler looks up special names, and does not support AttributeError(name=...).
    return AttributeError(message) if name.startswith("__") else AttributeError(message, name=name, obj=value)


# What to do with objects of torch that others are expected for.
_OF_TORCH = {
    "torch.nn": "convert it with nn.from_torch",
    "torch.optim": "write an optimizer of ember_ml.optim, which takes no parameters",
}


def torch_hint(value: object) -> str:
    """The end of a message about a module or optimizer of torch: its class, and what to do; else an empty text."""
    for base in type(value).__mro__:
        package = ".".join(base.__module__.split(".")[:2])
        if package in _OF_TORCH:
            return f", which is a {package}.{base.__name__}; {_OF_TORCH[package]}"
    return ""


def _is_importing(frame: FrameType) -> bool:
    """Whether a frame is at ``from module import name``."""
    return frame.f_code.co_code[frame.f_lasti] == opmap["IMPORT_FROM"]


def value_named(name: str, known: Collection[str]) -> str | None:
    """The one of the ``known`` names that ``name`` is, or is another spelling of.

    >>> value_named("acc", ["accuracy", "mse"])
    'accuracy'
    """
    return name if name in known else next((one for one in VALUES.get(name, ()) if one in known), None)


def value_hint(name: str, known: Collection[str]) -> str:
    """The end of a message about an unknown ``name``: which of the ``known`` names is meant, if any is near.

    >>> value_hint("acuracy", ["accuracy", "mse"])
    "; did you mean 'accuracy'?"
    """
    meant = next((one for one in _MEANT_VALUES.get(name, ()) if one in known), None) or nearest(name, known)
    return f"; did you mean {meant!r}?" if meant else ""


# What to write for arguments that another function takes.
_ARGUMENTS = {
    "dot_product_attention.mask": "bias= adds numbers to the scores",
    "flatten.args": "for torch.flatten(x, 1), use nn.Flatten() or reshape; flatten also flattens the batch",
    "sparse_categorical_crossentropy.y_true": "for one-hot targets or probabilities, use categorical_crossentropy",
}


def argument_hint(function: str, name: str) -> str:
    """The end of a message about an argument of another dtype or shape: the function that takes it, if there is one."""
    hint = _ARGUMENTS.get(f"{function}.{name}")
    return f"; {hint}" if hint else ""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The one of the ``known`` names that is spelled most like ``name``; ``None`` if none is near.

    >>> nearest("Batch_norm", ["BatchNorm", "LayerNorm"])
    'BatchNorm'
    """
    from difflib import get_close_matches

    by_letters = {_letters(one): one for one in known}
    near = get_close_matches(_letters(name), by_letters, n=1, cutoff=0.7)
    return by_letters[near[0]] if near else None


def _letters(name: str) -> str:
    return name.lower().replace("_", "")


def _accepted(owners: Collection[str], name: str, options: Collection[str]) -> tuple[str, ...] | None:
    """The options that ``name`` stands for in a function or class, or ``None``."""
    for entry in ACCEPTED.get(name, ()):
        owner, _, option = entry.rpartition(".")
        own = tuple(option.split("+"))
        if (not owner or owner in owners) and all(one in options for one in own):
            return own
    return None
