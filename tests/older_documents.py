"""Every name in the documents of earlier versions, by document: what ``docs/older_names.md`` must have.

Modules are written as the documents write them, as a module or as a file; variables inside of functions are left out.
"""

DOCUMENTS = {
    "Backend Refactoring Summary": """
        emberharmony mlx_backend.py emberharmony/backend/mlx
        emberharmony/backend/mlx/tensor_ops.py emberharmony/backend/mlx/math_ops.py
        emberharmony/backend/mlx/random_ops.py emberharmony/backend/mlx/device_ops.py
        emberharmony/backend/mlx/comparison_ops.py emberharmony/backend/mlx/dtype_ops.py
        emberharmony/backend/mlx/solver_ops.py
        zeros ones reshape add subtract multiply random_normal random_uniform to_device get_device equal not_equal
        get_dtype to_numpy_dtype solve matrix_inv
    """,
    "Backend Purity Migration Checklist": """
        .clinerules-code Frontend-Only Backend-Only
        ops/torch ops/mlx ops/numpy backend/torch backend/mlx backend/numpy
        backend/torch_backend.py backend/mlx_backend.py backend/numpy_backend.py
        torch_backend.py mlx_backend.py numpy_backend.py
        ops/tensor_ops.py ops/math_ops.py ops/random_ops.py ops/math.py ops/__init__.py backend/mlx/math_ops.py
        ops/torch/math_ops.py ops/mlx/math_ops.py ops/numpy/math_ops.py
        TorchTensorOps TorchDeviceOps TorchRandomOps TorchComparisonOps TorchDTypeOps TorchSolverOps
        MLXMathOps MLXTensorOps MLXDeviceOps MLXRandomOps MLXComparisonOps MLXDTypeOps MLXSolverOps
        NumpyTensorOps NumpyDeviceOps NumpyRandomOps NumpyComparisonOps NumpyDTypeOps NumpySolverOps
        emberlint split to_numpy sin convert_to_tensor get_backend().sin
    """,
    "Backend Migration Plan": """
        .clinerules-code EmberHarmony emberharmony
        utils/analyze_backend_operations.py utils/emberlint.py --verbose --migrate --backend --dry-run
        --frontend-backend-only torch mlx numpy
        emberharmony/ops/torch emberharmony/ops/mlx emberharmony/ops/numpy backend/torch_backend.py
        ops/tensor_ops.py ops/math_ops.py ops/random_ops.py ops/math.py pytest
        squeeze full arange tile sin min get_available_devices random_poisson convert_to_tensor get_backend
    """,
    "Backend Normalization Plan": """
        EmberHarmony cpu cuda mps metal
    """,
    "Ember ML Backend Architecture": """
        get_backend set_backend get_backend_module auto_select_backend get_device
        ~/.ember/backend EMBER_ML_BACKEND EMBER_BACKEND_FILE _get_backend_from_file
        _check_torch_cuda _check_torch_mps _check_torch
        _update_ops_aliases _aliased_backend _MASTER_OPS_LIST
        Numeric Shape ShapeLike TensorTypes NumpyArray TensorLike TensorType Parameter
        ember_ml/ops/stats/__init__.py _STATS_OPS_LIST _update_stats_aliases _aliased_backend_stats get_stats_module
        mean var median std percentile max min sum cumsum argmax sort argsort gaussian
        ember_ml/ops/linearalg/__init__.py _LINEARALG_OPS_LIST
        solve inv svd eig eigvals det norm qr cholesky lstsq diag diagonal
        ember_ml/nn/modules/activations/__init__.py _ACTIVATION_OPS_LIST _update_activation_aliases
        _aliased_backend_activations get_activations_module
        ember_ml.nn.modules.activations.relu_module ember_ml.nn.modules.activations.sigmoid_module
        ReLU Sigmoid relu sigmoid tanh softmax softplus
        ember_ml.backend.numpy.tensor.tensor ember_ml.backend.torch.tensor ember_ml.backend.mlx.tensor
        NumpyTensor TorchTensor MLXTensor
        ember_ml/nn/features/__init__.py _FEATURES_OPS_LIST _update_features_aliases features_ops_module
        nn/features/common/ nn/features/common/__init__.py nn/features/common/tensor_features.py
        pca standardize_features normalize_features one_hot scatter PCA Standardizer Normalizer fit
        ember_ml/nn/tensor/__init__.py ember_ml.nn.tensor.interfaces ember_ml.nn.tensor.interfaces.dtype
        ember_ml.nn.tensor.common ember_ml.nn.tensor.common.dtypes
        TensorInterface DTypeInterface EmberTensor EmberDType DType dtype dtype_instance
        get_dtype to_dtype_str from_dtype_str convert_to_tensor requires_grad _convert_to_backend_tensor
        zeros ones eye arange linspace zeros_like ones_like full full_like reshape transpose concatenate stack split
        add subtract multiply divide matmul dot equal not_equal less less_equal greater greater_equal
        to_device get_available_devices original_set_backend
        _BACKENDS _CURRENT_BACKEND_MODULE
    """,
}
