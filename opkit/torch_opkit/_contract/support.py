"""What an exception inside a check means: a fault, a refusal, an unsupported feature, or the checker's own limit."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import torch
from torch.autograd.gradcheck import GradcheckError

from torch_opkit._contract.case import Case, Fault, SkipCheck
from torch_opkit._contract.checks import Check, describe_error
from torch_opkit._contract.source import locate_error, python_functions, raised_outside_torch
from torch_opkit._torch_private import correct_gradient_count

RECORD_ONLY = {"pickle_and_copy", "jvp_formula"}
# An error in one of these checks means that the feature is not supported.
OPTIONAL = {
    "forward_mode", "func_grad", "vmap", "jacrev", "jacfwd", "hessian", "per_sample_gradients", "compile_forward",
    "compile_backward", "compile_shapes", "compile_func_grad", "export", "export_strict", "aot_inductor", "onnx",
    "threads", "gradgradcheck", "meta", "no_data_dependence", "half_precision",
    "autocast",
}  # fmt: skip

GRAPH_BREAK = (
    "Dynamo cannot follow this line. Compute with PyTorch operators; or hide Python code in a `custom_op` with a fake "
    "kernel, which compilers do not look into."
)

# What Dynamo itself does not trace yet, however it is written: a gap of PyTorch, by its name for the graph break.
DYNAMO_GAPS = {
    "Attempted to wrap RNN, GRU, or LSTM", "Unsupported custom jvp", "Unsupported custom vjp",
    "Unsupported autograd.Function context method", "autograd_function_kwonly_args",
}  # fmt: skip

# PyTorch's own messages, the cause that they name, and its remedy.
CAUSES = (
    (
        r"\.numpy\(\) is not supported for tensor subclasses|Can't call numpy\(\) on Tensor that requires grad",
        "leaves_torch",
        "The call leaves PyTorch by `.numpy()`, and autograd and compilers do not follow. Compute with PyTorch; or "
        "make it a `custom_op` with a fake kernel and a gradient.",
    ),
    (
        r"modified by an inplace operation",
        "saved_tensor_changed",
        "A tensor saved for backward is changed in place afterwards. Save a `.clone()`, or compute into a new tensor.",
    ),
    (
        r"leaf Variable that requires grad|more than one element of the written-to tensor",
        "input_changed",
        "The call writes to an argument. Compute into a new tensor: no `out=`, `x[...] =`, `add_`.",
    ),
    (
        r"may not alias|must not also be an input|output.* view of (an )?input|the output of this custom operator",
        "aliasing",
        "An output is an argument, or a view of one. End with `.clone()` if nothing else makes a new tensor.",
    ),
    (
        r"returned an invalid gradient at index \d+ - got .* but expected shape",
        "gradient_shape",
        "A gradient has another shape than its input. Sum over axes that were broadcast: `grad.sum_to_size(x.shape)`.",
    ),
    (
        r"returned an incorrect number of gradients|return from backward to be of the same structure as the inputs",
        "gradient_count",
        "`backward` must return one gradient for each argument of `forward`, None for those without one; for a list of "
        "tensors, a list of gradients.",
    ),
    (
        r"is not on the expected device|Expected all tensors to be on the same device",
        "device",
        "A tensor is created on the CPU. Create it on the device of the input: `x.new_zeros`, `device=x.device`.",
    ),
    (
        r"no fake impl|was no fake|no abstract impl|tried to run it with .* but .*no fake",
        "fake_missing",
        "Register a fake kernel, which gives the shape, dtype and strides of the outputs: `register_fake`.",
    ),
    (
        r"data-dependent|DataDependent|DynamicOutputShape|\.item\(\)|unbacked|Could not guard on",
        "data_dependent",
        "The call branches on values: select with `torch.where`; or make it a `custom_op` with a fake kernel, "
        "which compilers do not look into.",
    ),
)


def adapt_check(check: Check) -> Check:
    """The check as it runs on a foreign operator."""

    def function(case: Case) -> None:
        if check.name in RECORD_ONLY:
            raise SkipCheck("only an opkit.Op record guarantees this")
        if check.name == "autograd_registration" and not case.op.backward:
            raise SkipCheck("not differentiable, and it raises if a gradient is requested")
        try:
            check.function(case)
        except (AssertionError, GradcheckError, SkipCheck):
            raise
        except Exception as error:
            cause, expected = find_cause(error), False
            if cause and cause.kind == "leaves_torch":  # a gradient of its own is why a Function takes NumPy
                expected = check.name in OPTIONAL and "backward" in python_functions(case.op)
            elif cause and cause.kind == "fake_missing":  # the finding of `fake`
                expected = check.name == "meta"
            if cause and not expected:
                raise cause from error
            if check.compiled and (fault := find_compiler_fault(error)):
                raise fault from error
            if check.name not in OPTIONAL:
                raise
            raise SkipCheck(f"not supported: {_describe_gap(error)}") from error

    return replace(check, function=function)


def find_cause(error: BaseException) -> Fault | None:
    """The cause that one of PyTorch's own messages names."""
    message = " ".join(f"{type(error).__name__}: {correct_gradient_count(str(error))}".split())
    for pattern, kind, fix in CAUSES:
        if re.search(pattern, message):
            return Fault(kind, message, fix, locate_error(error))
    return None


def find_compiler_fault(error: Exception) -> Fault | None:
    """What keeps a compiler or exporter from following the operator: an error that eager mode does not raise."""
    message, place = describe_error(error), locate_error(error)
    if isinstance(error, torch._dynamo.exc.Unsupported):
        if error.gb_type in DYNAMO_GAPS:
            return None
        return Fault("graph_break", message, GRAPH_BREAK, place)
    if place and raised_outside_torch(error):
        return Fault("compile_crash", message, "Under a compiler the operator's own code raises an error.", place)
    return None


def _describe_gap(error: BaseException) -> str:
    """What is missing, in PyTorch's words; ONNX and Dynamo wrap the reason in advice."""
    while isinstance(error, torch.onnx.OnnxExporterError) and error.__cause__:
        error = error.__cause__
    words = " ".join(str(error).split())
    if explanation := re.search(r"Explanation: (.+?)(?= Hint:| Developer debug|$)", words):
        return f"torch.compile: {explanation[1]}"
    return f"{type(error).__name__}: {words[:200]}"


@contextmanager
def ignore_refusal() -> Iterator[None]:
    """For inputs that an operator may refuse: only a wrong result counts."""
    try:
        yield
    except (AssertionError, SkipCheck):
        raise
    except Exception:
        return
