"""How many operations each check of the contract judges on each engine, at least. These numbers may only rise."""

from __future__ import annotations

FLOORS: dict[str, dict[str, int]] = {
    "test_a_tensor_without_axes_along_one": {"torch": 64, "mlx": 64},
    "test_an_axis_out_of_range_is_an_axis_error": {"numpy": 107, "torch": 107, "mlx": 107},
    "test_any_memory_layout_gives_the_same_result": {"numpy": 394, "torch": 394, "mlx": 394},
    "test_any_shapes": {"numpy": 180, "torch": 180, "mlx": 180},
    "test_compilers_trace_it": {"torch": 460, "mlx": 460},
    "test_dtype_rule_holds": {"numpy": 372, "torch": 394, "mlx": 394},
    "test_empty_operands": {"numpy": 453, "torch": 453, "mlx": 453},
    "test_engines_agree": {"torch": 489, "mlx": 489},
    "test_every_kind_of_input_is_accepted": {"numpy": 395, "torch": 395, "mlx": 395},
    "test_example_runs": {"numpy": 493, "torch": 493, "mlx": 493},
    "test_gradients_are_the_differences": {"numpy": 346, "torch": 346, "mlx": 346},
    "test_inputs_are_not_modified": {"numpy": 451, "torch": 451, "mlx": 451},
    "test_is_provided": {"numpy": 493, "torch": 493, "mlx": 493},
    "test_no_gradient_is_zero_or_an_error": {"numpy": 147, "torch": 147, "mlx": 147},
    "test_override_equals_definition": {"numpy": 51, "torch": 68, "mlx": 38},
    "test_products": {"numpy": 7, "torch": 7, "mlx": 7},
    "test_results_are_tensors_of_the_engine": {"numpy": 432, "torch": 432, "mlx": 432},
    "test_results_are_those_of_the_reference": {"torch": 489, "mlx": 489},
    "test_second_derivatives_are_those_of_numpy": {"numpy": 346, "torch": 346, "mlx": 346},
    "test_signature_is_the_same_on_the_engine": {"numpy": 163, "torch": 175, "mlx": 195},
    "test_something_that_is_no_tensor_is_a_type_error": {"numpy": 414, "torch": 414, "mlx": 414},
    "test_special_values": {"numpy": 180, "torch": 180, "mlx": 180},
    "test_tangents_are_the_gradients_transposed": {"numpy": 346, "torch": 346, "mlx": 346},
}
