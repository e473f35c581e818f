"""How many operations each check of the contract judges on each engine, at least. These numbers may only rise."""

from __future__ import annotations

FLOORS: dict[str, dict[str, int]] = {
    "test_a_tensor_without_axes_along_one": {"torch": 65, "mlx": 65, "jax": 65},
    "test_an_axis_out_of_range_is_an_axis_error": {"numpy": 108, "torch": 108, "mlx": 108, "jax": 108},
    "test_any_memory_layout_gives_the_same_result": {"numpy": 404, "torch": 404, "mlx": 404, "jax": 404},
    "test_any_shapes": {"numpy": 180, "torch": 180, "mlx": 180, "jax": 180},
    "test_compilers_trace_it": {"torch": 471, "mlx": 471, "jax": 471},
    "test_dtype_rule_holds": {"numpy": 379, "torch": 404, "mlx": 404, "jax": 404},
    "test_empty_operands": {"numpy": 464, "torch": 464, "mlx": 464, "jax": 464},
    "test_engines_agree": {"torch": 500, "mlx": 500, "jax": 500},
    "test_every_kind_of_input_is_accepted": {"numpy": 405, "torch": 405, "mlx": 405, "jax": 405},
    "test_example_runs": {"numpy": 504, "torch": 504, "mlx": 504, "jax": 504},
    "test_gradients_are_the_differences": {"numpy": 357, "torch": 357, "mlx": 357, "jax": 357},
    "test_inputs_are_not_modified": {"numpy": 462, "torch": 462, "mlx": 462, "jax": 462},
    "test_is_provided": {"numpy": 504, "torch": 504, "mlx": 504, "jax": 504},
    "test_no_gradient_is_zero_or_an_error": {"numpy": 147, "torch": 147, "mlx": 147, "jax": 147},
    "test_override_equals_definition": {"numpy": 53, "torch": 71, "mlx": 40, "jax": 52},
    "test_products": {"numpy": 7, "torch": 7, "mlx": 7, "jax": 7},
    "test_results_are_tensors_of_the_engine": {"numpy": 443, "torch": 443, "mlx": 443, "jax": 443},
    "test_results_are_those_of_the_reference": {"torch": 500, "mlx": 500, "jax": 500},
    "test_second_derivatives_are_those_of_numpy": {"numpy": 357, "torch": 357, "mlx": 357, "jax": 357},
    "test_signature_is_the_same_on_the_engine": {"numpy": 172, "torch": 186, "mlx": 204, "jax": 120},
    "test_something_that_is_no_tensor_is_a_type_error": {"numpy": 424, "torch": 424, "mlx": 424, "jax": 424},
    "test_special_values": {"numpy": 180, "torch": 180, "mlx": 180, "jax": 180},
    "test_tangents_are_the_gradients_transposed": {"numpy": 357, "torch": 357, "mlx": 357, "jax": 357},
}
