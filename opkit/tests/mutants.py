"""At least one mutant for each check of the contract, most of them of the variance of a rolling window."""

from dataclasses import replace

import faults
import torch
from mutation import Mutant, unmasked_variance, variance, with_weights, without_oracle, without_time

from torch_opkit import Sample

MUTANTS = (
    Mutant("deterministic", "counts calls", kernel=faults.counts_calls),
    Mutant("deterministic", "random", kernel=lambda x, window: variance(x, window) * (1 + 1e-3 * torch.rand(()))),
    Mutant("deterministic", "cached by address", kernel=faults.cached_by_address),
    Mutant("deterministic", "cached by shape", function=faults.cached_by_shape, cases=without_oracle),
    Mutant(
        "settings",
        "window of three rows",
        {"backward": None},
        kernel=lambda x, window: variance(x, 3),
        cases=lambda c: replace(
            c, samples=tuple(Sample(*c.samples[0].tensors, window=rows) for rows in (3, 4)), golden=()
        ),
    ),
    Mutant("inputs_unchanged", "writes the last row", kernel=faults.writes_input),
    Mutant("inputs_unchanged", "fills missing values in place", kernel=faults.fills_missing_in_place),
    Mutant("no_aliasing", "returns its input", function=faults.returns_input, cases=without_oracle),
    Mutant("uninitialized_memory", "skips the warm-up", kernel=faults.skips_warmup_rows),
    Mutant("uninitialized_memory", "skips the last row", kernel=faults.skips_last_row),
    Mutant("threads", "depends on threads", kernel=faults.depends_on_threads),
    Mutant("values_float64", "another number", kernel=lambda x, window: 1.001 * variance(x, window)),
    Mutant("values_float32", "rounds", kernel=faults.rounds_float32),
    Mutant("oracle", "differs", cases=lambda c: replace(c, oracle=lambda x, window: 2 * c.oracle(x, window))),
    Mutant(
        "golden",
        "differs",
        cases=lambda c: replace(c, golden=(replace(c.golden[0], expected=c.golden[0].expected + 1),)),
    ),
    Mutant(
        "schema",
        "changes a hidden argument",
        {"reference": faults.variance_with_count, "backward": None},
        faults.passes_count,
        kernel=faults.increments_count,
    ),
    Mutant("fake", "one column too many", {"fake": faults.one_column_too_many}),
    Mutant("autograd_registration", "kernel is differentiable", {"backward": None}, kernel=variance, key="AutogradCPU"),
    Mutant("no_data_dependence", "reads values", function=faults.reads_values),
    Mutant("aot_dispatch", "reads values in backward", {"backward": faults.value_dependent}),
    Mutant("meta", "moves to the CPU", function=faults.moves_to_cpu),
    Mutant("pickle_and_copy", "reference in no module", {"reference": faults.in_no_module}),
    Mutant("strides", "assumes contiguous memory", kernel=faults.assumes_contiguous),
    Mutant("short_series", "raises without its name", function=faults.raises_without_name),
    Mutant("zero_rows", "indexes the first row", function=faults.raises_if(lambda x: x.shape[-2] == 0)),
    Mutant("one_asset", "squeezes", function=faults.squeezes),
    Mutant("empty_batch", "indexes the first sample", function=faults.raises_if(lambda x: 0 in x.shape[:-2])),
    Mutant("batch_axes", "supports one batch axis only", function=faults.raises_if(lambda x: x.dim() > 3)),
    Mutant(
        "gradient_layout",
        "assumes contiguous memory",
        {"backward": faults.of_contiguous_gradient, "mask_nan_grad": False},
    ),
    Mutant("gradcheck", "off by 1e-4", {"backward": faults.scaled(lambda: 1.0001)}),
    Mutant("gradgradcheck", "detaches", {"backward": faults.detached}),
    Mutant("forward_mode", "zero tangent", {"jvp": faults.scaled_jvp(lambda: 0.0)}),
    Mutant("jvp_formula", "off by 1e-9", {"jvp": faults.scaled_jvp(lambda: 1 + 1e-9)}),
    Mutant("causal", "one row ahead", {"reference": faults.looks_ahead, "backward": None}, cases=without_oracle),
    Mutant("causal", "rounds long complete panels", kernel=faults.rounds_if_complete),
    Mutant("causal", "wrong causal=False", {"causal": False}),
    Mutant("causal_gradient", "one row ahead", {"backward": faults.leaks_ahead}),
    Mutant("warmup", "one row too many", {"warmup": lambda window: window}),
    Mutant("live", "keeps one row too few", cases=faults.live_variance(faults.keeps_one_row_too_few)),
    Mutant("live", "writes to its state", cases=faults.live_variance(faults.keeps_rows_in_place)),
    Mutant(
        "warmup",
        "zeros for NaN",
        {"reference": faults.zeros_in_warmup, "backward": faults.zeros_backward},
        cases=without_oracle,
    ),
    Mutant("missing_values", "replaces NaN by one", kernel=faults.replaces_nan_by_one),
    Mutant("missing_values_gradient", "multiplies by NaN", {"backward": faults.multiplied_by_nan}),
    Mutant("nan_output_gradient", "adds NaN outside", {"reference": unmasked_variance}, function=faults.adds_nan),
    Mutant(
        "func_grad",
        "detaches under torch.func",
        function=faults.detaches_if(lambda: faults.GRAD in faults.transforms()),
    ),
    Mutant(
        "jacrev",
        "doubles under vmap",
        {"backward": faults.scaled(lambda: 1.0 + (faults.transforms() == [faults.VMAP]))},
    ),
    Mutant(
        "jacfwd",
        "zero tangent under vmap",
        {"jvp": faults.scaled_jvp(lambda: 1.0 - (faults.transforms()[:1] == [faults.VMAP]))},
    ),
    Mutant("hessian", "wrong when nested", {"backward": faults.scaled(lambda: 1.0 + (len(faults.transforms()) > 2))}),
    Mutant("vmap", "reverses the batch", op_class=faults.ReversedBatch),
    with_weights("vmap", "reverses the batch of weights", op_class=faults.ReversedBatch),
    with_weights("vmap", "batches weights as a panel", vmap="batch"),
    with_weights("causal", "wrong causal=False with weights", causal=False),
    without_time("vmap", "batches a batch statistic", vmap="batch"),
    without_time(
        "gradcheck", "ignores the mean", backward=lambda grad, *, x, weight: (grad * weight, (grad * x).sum(0))
    ),
    Mutant(
        "per_sample_gradients",
        "detaches under vmap(grad)",
        function=faults.detaches_if(lambda: faults.transforms() == [faults.VMAP, faults.GRAD]),
    ),
    Mutant("half_precision", "returns float32", function=faults.returns_float32_for_half),
    Mutant("autocast", "computes in bfloat16", function=faults.computes_in_bfloat16),
    Mutant("large_level", "E[x^2] - E[x]^2", kernel=faults.subtracts_squares),
    Mutant("long_series", "drifts", kernel=faults.drifts),
    Mutant("bad_input", "accepts window=0", function=faults.accepts_any_window),
)

COMPILED_MUTANTS = (
    Mutant("deterministic", "counts calls", kernel=faults.counts_calls),
    Mutant("deterministic", "random", kernel=lambda x, window: variance(x, window) * (1 + 1e-3 * torch.rand(()))),
    Mutant("deterministic", "cached by address", kernel=faults.cached_by_address),
    Mutant("deterministic", "cached by shape", function=faults.cached_by_shape, cases=without_oracle),
    Mutant("compile_forward", "breaks the graph", function=faults.breaks_graph),
    Mutant(
        "compile_backward",
        "doubles when traced",
        {"backward": faults.scaled(lambda: 1.0 + (faults.is_traced() and not faults.transforms()))},
    ),
    Mutant("compile_shapes", "loops over rows", function=faults.loops_over_rows),
    Mutant(
        "compile_func_grad",
        "doubles when traced",
        {"backward": faults.scaled(lambda: 1.0 + (faults.is_traced() and bool(faults.transforms())))},
    ),
    Mutant("export", "raises in export", function=faults.raises_if(lambda x: torch.compiler.is_exporting())),
    Mutant(
        "export_strict",
        "raises under Dynamo",
        function=faults.raises_if(lambda x: torch.compiler.is_exporting() and torch.compiler.is_dynamo_compiling()),
    ),
    Mutant(
        "aot_inductor",
        "reads values in the reference",
        {"reference": faults.branches_on_values, "decomposition": variance},
        kernel=variance,
    ),
    Mutant("onnx", "has no ONNX form", {"decomposition": lambda x, window: x.cummax(-2).values}),
)
