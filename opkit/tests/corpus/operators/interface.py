"""Bad inputs, compilers and exporters."""

import os
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from corpus.entries import fault, healthy
from corpus.makes import Saved, custom_op, library_op, prices, rand, randn, series


@fault("bad_input", samples=[(rand(3, 4), 2)], bad_inputs=[(rand(3, 4), 0)])
def accepts_zero_window(x: Tensor, window: int) -> Tensor:
    return x.cumsum(-1) / max(window, 1)


@fault("bad_input", samples=[(rand(3, 4), rand(3, 4, seed=1))], bad_inputs=[(rand(3, 4), rand(4))])
@custom_op()
def broadcasts_silently(x: Tensor, y: Tensor) -> Tensor:
    return x - y


@fault(
    "bad_input",
    samples=[(randn(4, 3), torch.tensor([0, 2, 1, 0]))],
    bad_inputs=[(randn(4, 3), torch.tensor([0, 5, 1, 0]))],
)
def wraps_classes(x: Tensor, target: Tensor) -> Tensor:
    return -x.log_softmax(-1).gather(-1, (target % x.shape[-1]).unsqueeze(-1)).mean()


class AcceptsProbabilityAboveOne(nn.Module):
    def forward(self, x: Tensor, p: float = 0.5) -> Tensor:
        return x * (1 - p)


fault("bad_input", samples=[(rand(3, 4),)], bad_inputs=[(rand(3, 4), 1.5)])(AcceptsProbabilityAboveOne)


class AcceptsNegativePower(Saved):
    @staticmethod
    def forward(x: Tensor, alpha: float) -> Tensor:
        return x * alpha

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.settings[0], None


fault("bad_input", samples=[(rand(3, 4), 0.3)], bad_inputs=[(rand(3, 4), -0.3)])(AcceptsNegativePower)


@fault("bad_message", samples=[(rand(3, 4), 2)], bad_inputs=[(rand(3, 4), 0)])
def divides_by_zero_window(x: Tensor, window: int) -> Tensor:
    return x.cumsum(-1) * (1 / window)


@fault("bad_message", samples=[(rand(3, 4), 2)], bad_inputs=[(rand(3, 4), -1)])
@library_op("(Tensor x, int window) -> Tensor", "CompositeImplicitAutograd")
def asserts_window(x: Tensor, window: int) -> Tensor:
    assert window > 0
    return x.cumsum(-1) / window


@fault("bad_message", samples=[(rand(3, 4), "mean")], bad_inputs=[(rand(3, 4), "median")])
def unknown_reduction(x: Tensor, reduction: str) -> Tensor:
    return {"mean": x.mean, "sum": x.sum}[reduction]()


@fault("graph_break", samples=[(rand(3, 4),)])
def reads_file(x: Tensor) -> Tensor:
    with open(os.devnull, "rb") as file:
        return x + len(file.read())


@fault("graph_break", samples=[(rand(3, 4),)])
def breaks_on_purpose(x: Tensor) -> Tensor:
    torch._dynamo.graph_break()
    return x.exp()


class CallsPathlib(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2 if Path(os.devnull).stat() else x


fault("graph_break", samples=[(rand(3, 4),)])(CallsPathlib)


@fault("recompiles", samples=[(rand(3, 4),)])
def unrolls_batch(x: Tensor) -> Tensor:
    return (
        torch.stack([row.cumsum(-1) for row in x.reshape(-1, x.shape[-1]).unbind(0)]).reshape(x.shape)
        if x.numel()
        else x.clone()
    )


@healthy(time=-2, causal=True, samples=[(prices(),)])
def unrolls_time(x: Tensor) -> Tensor:
    rows = list(x[..., :1, :].unbind(-2))
    for t in range(1, x.shape[-2]):
        rows.append(0.8 * rows[-1] + 0.2 * x[..., t, :])
    return torch.stack(rows, -2) if rows else x.clone()


@fault("compile_wrong", samples=[(rand(3, 4),)])
def differs_when_compiled(x: Tensor) -> Tensor:
    return x * 1.01 if torch.compiler.is_compiling() else x * 1.0


@fault("compile_wrong", samples=[(rand(3, 4),)])
@library_op("(Tensor x) -> Tensor", "CompositeImplicitAutograd")
def composite_differs_when_compiled(x: Tensor) -> Tensor:
    return x.exp() + (0.1 if torch.compiler.is_compiling() else 0.0)


class BackwardDiffersWhenCompiled(Saved):
    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.square()

    @staticmethod
    def backward(ctx, grad):
        return (2.0 if not torch.compiler.is_compiling() else 3.0) * grad * ctx.saved_tensors[0]


fault("compile_wrong", samples=[(rand(3, 4),)])(BackwardDiffersWhenCompiled)


@fault("export", samples=[(rand(3, 4),)])
def refuses_export(x: Tensor) -> Tensor:
    if torch.compiler.is_exporting():
        raise RuntimeError("cannot be exported")
    return x.exp()


@fault("onnx", samples=[(randn(2, 3, 3),)])
def without_onnx(x: Tensor) -> Tensor:
    return torch.linalg.svdvals(x).sum(-1)


@fault("look_ahead", make="cpp", slow=True, **series())
def reversed_cumulative_sum() -> object:
    return _build("reversed_cumulative_sum", "for (int64_t t = rows - 2; t >= 0; --t)", "+ to[(t + 1) * width + n]")


@healthy(make="cpp", slow=True, **series())
def native_cumulative_sum() -> object:
    return _build("native_cumulative_sum", "for (int64_t t = 1; t < rows; ++t)", "+ to[(t - 1) * width + n]")


@fault("uninitialized_memory", make="cpp", slow=True, **series())
def skips_last_row() -> object:
    return _build("skips_last_row", "for (int64_t t = 1; t < rows - 1; ++t)", "+ to[(t - 1) * width + n]")


def _build(name: str, loop: str, term: str) -> object:
    """A cumulative sum in C++, over contiguous panels of float32 or float64."""
    import torch_opkit as opkit

    source = """
template <typename scalar_t>
void run(const scalar_t* from, scalar_t* to, int64_t panels, int64_t rows, int64_t width) {
  for (int64_t p = 0; p < panels; ++p, from += rows * width, to += rows * width) {
    for (int64_t n = 0; n < width && rows > 0; ++n) to[FIRST * width + n] = from[FIRST * width + n];
    LOOP for (int64_t n = 0; n < width; ++n) to[t * width + n] = from[t * width + n] TERM;
  }
}
Tensor NAME(const Tensor& input) {
  Tensor x = torch::stable::contiguous(input);
  Tensor y = torch::stable::empty_like(x);
  const int64_t rows = x.size(-2), width = x.size(-1);
  const int64_t panels = rows * width ? x.numel() / (rows * width) : 0;
  if (x.scalar_type() == torch::headeronly::ScalarType::Double)
    run(x.const_data_ptr<double>(), y.mutable_data_ptr<double>(), panels, rows, width);
  else
    run(x.const_data_ptr<float>(), y.mutable_data_ptr<float>(), panels, rows, width);
  return y;
}"""
    first = "(rows - 1)" if "--t" in loop else "0"
    for word, text in {"NAME": name, "LOOP": loop, "TERM": term, "FIRST": first}.items():
        source = source.replace(word, text)
    operators = opkit.load_inline(f"corpus_{name}", source, functions=[name])
    operator = getattr(operators, name)
    torch.library.register_fake(operator.default._schema.name, torch.empty_like)
    return operator


@healthy(samples=[(rand(3, 4), 2)], bad_inputs=[(rand(3, 4), 0)])
def refuses_window(x: Tensor, window: int) -> Tensor:
    if window < 1:
        raise ValueError(f"refuses_window: window must be positive; got {window}")
    return x.cumsum(-1) / window


@healthy(samples=[(randn(4, 3), torch.tensor([0, 2, 1, 0]))])
def cross_entropy(x: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(x, target)


@healthy(samples=[(rand(3, 4),)])
@custom_op()
def kernel_without_gradient(x: Tensor) -> Tensor:
    return x.floor()
