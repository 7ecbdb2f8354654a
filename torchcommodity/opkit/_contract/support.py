"""What an exception inside a check means: a fault, a refusal, an unsupported feature, or the checker's own limit."""

from dataclasses import replace

from torch.autograd.gradcheck import GradcheckError

from torchcommodity.opkit._contract.case import Case, SkipCheck
from torchcommodity.opkit._contract.checks import Check

RECORD_ONLY = {
    "pickle_and_copy", "jvp_formula", "half_precision", "autocast", "nan_output_gradient", "empty_batch", "batch_axes",
    "bad_input", "meta", "no_data_dependence",
}  # fmt: skip
# An error in one of these checks means that the feature is not supported.
OPTIONAL = {
    "forward_mode", "func_grad", "vmap", "jacrev", "jacfwd", "hessian", "per_sample_gradients", "compile_forward",
    "compile_backward", "compile_shapes", "compile_func_grad", "export", "export_strict", "aot_inductor", "onnx",
    "threads", "gradgradcheck",
}  # fmt: skip


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
            if check.name not in OPTIONAL:
                raise
            message = " ".join(str(error).split())[:200]
            raise SkipCheck(f"not supported: {type(error).__name__}: {message}") from error

    return replace(check, function=function)
