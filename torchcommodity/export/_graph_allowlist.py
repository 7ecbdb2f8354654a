"""Allowlist for the graph of a pt2 file: the operators that `export` writes, numbers and names.

`torch.export.load` looks up any torch function that the file names, evaluates its size expressions as Python, and
unpickles. The graph is therefore checked before torch reads it. The operators are those of the graphs of all models,
and of the usual layers of other networks; none writes to a tensor or a file, returns uninitialized memory, or trusts an
index.
"""

import math
import re
from collections.abc import Iterator
from typing import Any

import torch

ATEN = [
    "__and__.Scalar", "__and__.Tensor", "__or__.Tensor", "_assert_tensor_metadata.default", "abs.default", "add.Tensor",
    "alias.default", "all.dim", "amax.default", "amin.default", "any.dim", "arange.default",
    "bitwise_not.default", "broadcast_tensors.default", "cat.default", "clamp.Tensor", "clamp.default",
    "conv1d.default", "convolution.default", "cos.default", "cumsum.default", "detach.default",
    "diff.default", "div.Tensor", "dropout.default", "eq.Tensor", "exp.default", "expand.default", "expand_as.default",
    "expm1.default", "eye.default", "flatten.using_ints", "flip.default", "floor.default", "full_like.default",
    "gather.default", "ge.Scalar", "gt.Scalar", "gt.Tensor", "index.Tensor", "index_select.default", "isfinite.default",
    "isinf.default", "isnan.default", "le.Scalar", "lift_fresh_copy.default", "linalg_matrix_exp.default",
    "linear.default", "log.default", "log1p.default", "lt.Scalar", "mT.default", "masked_fill.Scalar", "matmul.default",
    "maximum.default", "minimum.default", "movedim.int", "mul.Tensor", "nan_to_num.default", "ne.Tensor", "neg.default",
    "new_full.default", "new_zeros.default", "ones_like.default", "pad.default", "pow.Scalar",
    "pow.Tensor_Tensor", "reciprocal.default", "relu.default", "remainder.Scalar",
    "reshape.default", "rsqrt.default", "rsub.Scalar", "scaled_dot_product_attention.default", "scatter.src",
    "select.int", "sigmoid.default", "sin.default", "slice.Tensor", "softplus.default",
    "split.Tensor", "split_with_sizes.default", "sqrt.default", "square.default", "squeeze.dim", "stack.default",
    "sub.Tensor", "sum.dim_IntList", "sym_size.int", "tanh.default", "to.device", "to.dtype", "to.dtype_layout",
    "transpose.int", "tril.default", "unbind.int", "unflatten.int", "unsqueeze.default", "view.default",
    "where.ScalarOther", "where.ScalarSelf", "where.self", "zeros_like.default",
]  # fmt: skip
NETWORKS = [  # of the usual layers of other networks
    "acos.default", "adaptive_avg_pool1d.default", "add.Scalar", "addmm.default", "arange.start", "argmax.default",
    "argmin.default", "asin.default", "asinh.default", "atan.default", "atan2.default", "avg_pool1d.default",
    "batch_norm.default", "bmm.default", "ceil.default", "chunk.default", "clone.default", "contiguous.default",
    "conv2d.default", "cosh.default",
    "div.Scalar", "elu.default", "eq.Scalar", "erf.default", "erfinv.default", "full.default", "ge.Tensor",
    "gelu.default", "group_norm.default", "gru.input", "hardtanh.default", "layer_norm.default", "le.Tensor",
    "leaky_relu.default", "log2.default", "log_softmax.int", "logical_and.default", "logical_not.default",
    "logical_or.default", "logsumexp.default", "lstm.input", "lt.Tensor", "max.default", "max.dim",
    "max_pool1d.default", "mean.default", "mean.dim", "min.default", "min.dim", "mish.default", "mm.default",
    "mul.Scalar", "native_layer_norm.default", "new_ones.default", "ones.default", "permute.default",
    "pow.Tensor_Scalar", "prod.dim_int", "promote_types.default", "remainder.Tensor", "repeat.default",
    "repeat_interleave.self_int", "rms_norm.default", "rnn_relu.input", "rnn_tanh.input", "round.default",
    "scatter_add.default", "selu.default", "sign.default", "silu.default", "sinh.default", "softmax.int",
    "sort.default", "special_ndtr.default", "special_ndtri.default", "split.sizes",
    "squeeze.default", "squeeze.dims", "std.correction", "std.dim", "sub.Scalar", "sum.default", "t.default",
    "tan.default", "to.other", "topk.default", "triu.default", "var.correction", "var.dim", "where.Scalar",
    "zeros.default",
]  # fmt: skip
COMMODITY = [
    "correlation_regime", "ewm_mean", "garch_variance", "linear_recurrence", "lltm", "lstm", "rolling_correlation",
    "rolls_ahead", "seasonal_decompose", "series_program", "technical_indicators",
]  # fmt: skip
SIZES = ("_operator.add", "_operator.mul", "_operator.neg", "_operator.sub")  # arithmetic of sizes
OPERATORS = frozenset(
    [
        *(f"torch.ops.aten.{name}" for name in (*ATEN, *NETWORKS)),
        *(f"torch.ops.commodity.{name}.default" for name in COMMODITY),
        *SIZES,
    ]
)
IN_PLACE = {  # of tensors that nothing else reads
    torch.ops.aten.detach_.default: torch.ops.aten.detach.default,
    torch.ops.aten.scatter_.src: torch.ops.aten.scatter.src,
    torch.ops.aten.scatter_add_.default: torch.ops.aten.scatter_add.default,
}
MAX_SIZE = 10**7  # of a literal size: a graph makes no larger tensor than its inputs ask for
SIZED = re.compile(r"torch\.ops\.aten\.(new_|arange|eye|expand|full|ones|pad|repeat|unflatten|zeros)\S*|_operator\.\w+")
NAME = re.compile(r"-?[\w.+]*")  # also numbers such as -Infinity
SIZE = re.compile(  # numbers, size symbols and a few functions; cannot be code without dots and other names
    r"'?[su]\d+'?|\d+|Symbol|Integer|Add|Mul|Max|Min|Mod|FloorDiv|PythonMod|(positive|integer)=True|[\s+\-*(),]"
)
PROGRAM = re.compile(r"[\w.+\-%; ]*")  # statements of a `commodity` operator: no quotes, brackets or commas
SPECS = {  # of (prices, days) and of one tensor; torch's loader imports what a spec names
    "in_spec": '[1, {"type": "builtins.tuple", "context": "null", "children_spec": [{"type": "builtins.tuple", '
    '"context": "null", "children_spec": [{"type": null, "context": null, "children_spec": []}, {"type": null, '
    '"context": null, "children_spec": []}]}, {"type": "builtins.dict", "context": "[]", "children_spec": []}]}]',
    "out_spec": '[1, {"type": null, "context": null, "children_spec": []}]',
}
MAX_EXPRESSION = 1000  # characters


def replace_in_place(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """Write in-place operators as the operators that return their result, so that a graph changes no tensor."""
    seen: set[torch.fx.Node] = set()
    for node in program.graph.nodes:
        if node.target in IN_PLACE:
            for user in list(node.args[0].users):
                if user not in seen and user is not node:
                    user.replace_input_with(node.args[0], node)
            node.target = IN_PLACE[node.target]
        seen.add(node)
    program.graph_module.recompile()
    return program


def strip_debug_info(graph: dict[str, Any]) -> dict[str, Any]:
    """Remove stack traces, which contain local paths, and guards, which are Python code."""
    for node in graph["graph_module"]["graph"]["nodes"]:
        node["metadata"] = {}
    graph["graph_module"]["metadata"] = {}
    graph["guards_code"] = []
    return graph


def check_graph(graph: dict[str, Any]) -> None:
    """Raise ValueError if the graph names anything but the operators of `export`, changes a tensor, or has code."""
    for key, text in _strings(graph, ""):
        if not _is_allowed(key, text):
            raise ValueError(f"a graph with content other than tensor operators: {key or 'key'} {text[:60]!r}")
    module = graph["graph_module"]
    outputs = [kind for spec in module["signature"]["output_specs"] for kind in spec]
    if outputs != ["user_output"]:
        raise ValueError(f"a graph with content other than tensor operators: outputs {', '.join(outputs)[:60]!r}")
    for node in module["graph"]["nodes"]:
        if SIZED.fullmatch(node["target"]):
            for argument in node["inputs"]:
                if (size := _largest(argument["arg"])) > MAX_SIZE:
                    raise ValueError(f"a graph with sizes up to {MAX_SIZE}; got one of {size:.0e} in {node['target']}")


def _is_allowed(key: str, text: str) -> bool:
    if key in SPECS:
        return text == SPECS[key]
    if key in ("target", "as_operator"):
        return text in OPERATORS
    if key == "expr_str":
        return len(text) <= MAX_EXPRESSION and not SIZE.sub("", text)
    return (PROGRAM if key == "as_string" else NAME).fullmatch(text) is not None


def _largest(argument: Any) -> float:
    """Product of the literal sizes of an argument, without the -1 of views."""
    if isinstance(argument, dict):
        sizes = [_largest(value) for key, value in argument.items() if key.startswith(("as_int", "as_sym_int"))]
    elif isinstance(argument, list):
        sizes = [_largest(value) for value in argument]
    else:
        return abs(float(argument)) if isinstance(argument, int) else 1.0
    return math.prod(max(size, 1.0) for size in sizes)


def _strings(value: Any, key: str) -> Iterator[tuple[str, str]]:
    """Yield every string with its key, and every key."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item, key)
    elif isinstance(value, dict):
        for name, item in value.items():
            yield "", name
            yield from _strings(item, name)
