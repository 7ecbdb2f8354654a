"""What to do about a failed check, for operators that are not `Op` records."""

from typing import TYPE_CHECKING

from torch_opkit._op import Op

if TYPE_CHECKING:
    from torch_opkit._contract.foreign import ForeignOp

FOREIGN: dict[str, str] = {
    "bad_input": "Check arguments before they are used, and raise a ValueError that names the argument, what is "
    "expected and what was received.",
    "inputs_unchanged": "The operator writes to an argument: compute into a new tensor, without `out=`, `x[...] =` or "
    "`add_`; or declare the change (`mutates_args`, `ctx.mark_dirty`).",
    "uninitialized_memory": "An output element is never written and shows what was in memory before: start from "
    "`torch.zeros` or `torch.full` instead of `torch.empty`, and run every loop to the last element.",
    "values_float64": "The operator differs from `reference`, its definition. Fix whichever is wrong.",
    "autograd_registration": "Make the gradient known to autograd: `register_autograd` of a custom_op, or the Autograd "
    "key of a library; not an `autograd.Function` inside the kernel.",
    "aot_dispatch": "Under AOT dispatch the operator or its backward formula gives another result: compute both with "
    "PyTorch operators, without `.data`, `.detach()` or NumPy.",
    "zero_rows": "T = 0 must return an output without rows, or raise an error in words: guard the first row.",
    "short_series": "A short series must give the same rows as the start of a long one, or an error in words.",
    "warmup": "The first `warmup` rows must be NaN and, for complete input, no later row may be: fix the operator, or "
    "the `warmup` that was passed.",
    "missing_values": "Operator and reference differ for a missing value: decide on the rule, and fix one of them.",
    "nan_output_gradient": "A NaN output passes on its incoming gradient: set it to zero in the backward formula where "
    "the output is NaN.",
    "causal": "Row t reads a row after t: look for a centered window, a `flip`, a mean over all rows, an index off by "
    "one. If it must look ahead, pass causal=False.",
    "half_precision": "Compute float16 and bfloat16 in float32 (`x.float()`), and return the dtype of the input.",
    "autocast": "Under autocast a matmul or convolution computes in bfloat16: call `torch.library.register_autocast`, "
    "or use `torch.amp.custom_fwd(cast_inputs=torch.float32)` or `torch.autocast(..., enabled=False)` inside.",
    "forward_mode": "The tangent is not the transpose of the gradient: write a `jvp` that agrees with `backward`.",
    "func_grad": "Under torch.func the gradient differs from eager mode: compute with PyTorch operators only, without "
    "`.data`, `.item()` or a branch on `torch.compiler` or `torch.func`.",
    "compile_func_grad": "compile(func.grad(...)) gives another gradient: compute with PyTorch operators only.",
    "aot_inductor": "The ahead-of-time model fails without Python: use operators of PyTorch or of a C++ library.",
    "onnx": "The operator has no ONNX form: compute with PyTorch operators, or pass a `custom_translation_table` to "
    "`torch.onnx.export`.",
}
BY_MAKE: dict[tuple[str, str], str] = {
    ("nondeterministic", "nn.Module"): "If it draws random numbers, or uses what it updates, in training only: call "
    "`eval()` before the check. Else pass a generator or a seed, and compute from the arguments alone.",
    ("forward_mode", "autograd.Function"): "Write the static method `jvp(ctx, *tangents)`, the derivative along the "
    "tangents, with what `ctx.save_for_forward` saved.",
    ("forward_mode", "custom_op"): "`register_autograd` has no forward mode: torch.func.jvp sees zeros. Make the "
    "operator an `autograd.Function` with a `jvp`, or an `opkit.Op`.",
    ("wrong_second_gradient", "autograd.Function"): "`backward` must be made of PyTorch operators, without `detach`, "
    "`.data`, `no_grad` or NumPy. If it cannot be, decorate it with `torch.autograd.function.once_differentiable`: a "
    "second derivative then raises an error instead of being wrong.",
    ("vmap", "autograd.Function"): "Set `generate_vmap_rule = True`, or fix the static method `vmap`.",
    ("vmap", "custom_op"): "Fix the rule that `register_vmap` registers: where the batch axis is, and where it goes.",
    ("fake", "custom_op"): "The function of `register_fake` must give every output the shape, dtype and strides of the "
    "real one: `x.new_empty(shape)`.",
}


def remedy(check: str, kind: str, fix: str, op: "Op | ForeignOp", *, is_specific: bool) -> str:
    """The remedy for an operator of this make. `is_specific`: `fix` is about the cause, not about the check."""
    if isinstance(op, Op):
        return fix
    of_make = BY_MAKE.get((kind, op.make.kind)) or BY_MAKE.get((check, op.make.kind))
    if is_specific:
        return BY_MAKE.get((kind, op.make.kind), fix)
    return of_make or FOREIGN.get(check, fix)
