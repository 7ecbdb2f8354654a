"""The causes of the corpus, and what a report may call each: the name of a check row, or the kind of a root cause."""

ACCEPTED: dict[str, tuple[str, ...]] = {
    # gradients
    "wrong_gradient": ("gradcheck",),
    "wrong_gradient_layout": ("strides", "gradient_layout"),  # for incoming gradients that are expanded or strided
    "nan_gradient": ("gradcheck", "nan_from_branch", "missing_values_gradient"),
    "nan_from_branch": ("gradcheck", "missing_values_gradient"),
    "missing_gradient": ("gradcheck", "wrong_gradient", "autograd_registration", "not_differentiable"),
    "saved_tensor_changed": ("gradcheck", "inputs_unchanged", "input_changed"),
    "incoming_gradient_changed": ("inputs_unchanged", "gradient_changed", "gradient_layout"),
    "wrong_second_gradient": ("gradgradcheck", "detached_backward"),
    "zero_tangent": ("forward_mode",),
    "wrong_tangent": ("forward_mode",),
    # state and settings
    "nondeterministic": ("deterministic", "stateful", "state"),
    "stale_cache": ("nondeterministic", "deterministic", "stateful", "state", "cached"),
    "setting_ignored": ("settings",),
    "setting_ignored_in_fake": ("fake", "settings", "wrong_fake"),
    "setting_ignored_in_backward": ("gradcheck", "wrong_gradient", "settings"),
    "setting_unchecked": ("bad_input", "settings", "negative_setting", "setting_accepted"),
    # memory
    "input_changed": ("inputs_unchanged",),
    "aliasing": ("no_aliasing",),
    "uninitialized_memory": (),
    # registration
    "schema": ("schema", "input_changed", "inputs_unchanged", "no_aliasing", "aliasing"),
    "fake": ("fake", "fake_missing", "wrong_fake", "no_fake", "missing_fake"),
    "fake_specialized": ("fake", "aot_dispatch", "compile_shapes", "wrong_fake", "export"),
    "autograd_registration": ("fake_missing", "not_differentiable", "missing_gradient", "gradcheck", "aot_dispatch"),
    "data_dependent": ("no_data_dependence", "data_dependence", "fake", "aot_dispatch"),
    "device": ("fake_missing", "meta", "fake", "hard_coded_device", "no_data_dependence"),
    # layouts and shapes
    "strides": ("layout_assumed", "wrong_strides"),
    "vmap": ("wrong_vmap",),
    "batch_axes": ("batch_mixed", "vmap"),
    "empty_batch": ("crash_empty",),
    "zero_rows": ("crash_empty",),
    "short_series": ("crash_short",),
    "one_asset": ("squeezed",),
    # time
    "look_ahead": ("causal", "look_ahead_values"),
    "look_ahead_gradient": ("causal_gradient", "gradcheck", "wrong_gradient"),
    "warmup": ("wrong_warmup",),
    "missing_values": ("nan_handling", "values_float64"),
    "nan_output_gradient": ("missing_values_gradient", "nan_gradient"),
    # numbers
    "wrong_values": ("values_float64", "wrong_value"),
    "dtype": ("values_float32", "half_precision", "fake", "dtype_changed", "precision_lost"),
    "half_precision": ("crash", "overflow", "half_overflow"),
    "autocast": ("half_precision",),
    "cancellation": ("large_level", "precision"),
    "drift": ("long_series", "precision"),
    "threads": ("thread_dependent", "nondeterministic"),
    # interface
    "bad_input": ("accepted_bad_input",),
    "bad_message": ("bad_input",),
    # compilers
    "graph_break": ("compile_forward", "data_dependent", "no_data_dependence"),
    "recompiles": ("compile_shapes", "fake", "aot_dispatch", "no_data_dependence"),
    "compile_wrong": ("compile_forward", "compile_backward", "aot_dispatch", "fake"),
    "export": ("export_strict", "data_dependent", "no_data_dependence"),
    "onnx": ("export", "aot_inductor"),
}
