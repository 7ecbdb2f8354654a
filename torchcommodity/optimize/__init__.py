"""Make a trained model smaller or faster: profile, prune, distill, quantize, compile, benchmark."""

from torchcommodity.optimize._batches import BatchInputs as BatchInputs
from torchcommodity.optimize._batches import benchmark_inputs as benchmark_inputs
from torchcommodity.optimize._benchmark import BenchmarkRow as BenchmarkRow
from torchcommodity.optimize._benchmark import benchmark_table as benchmark_table
from torchcommodity.optimize._benchmark import summarize_benchmark as summarize_benchmark
from torchcommodity.optimize._compile.compile import compile as compile
from torchcommodity.optimize._compile.result import CompileResult as CompileResult
from torchcommodity.optimize._compile.result import GraphBreak as GraphBreak
from torchcommodity.optimize._compile.result import OutputDifference as OutputDifference
from torchcommodity.optimize._compile.result import Recompilation as Recompilation
from torchcommodity.optimize._distill import Distillation as Distillation
from torchcommodity.optimize._distill import distill as distill
from torchcommodity.optimize._importance import Importance as Importance
from torchcommodity.optimize._importance import correction_importance as correction_importance
from torchcommodity.optimize._importance import importance as importance
from torchcommodity.optimize._importance import prune_inputs as prune_inputs
from torchcommodity.optimize._importance import prune_rows as prune_rows
from torchcommodity.optimize._mixed_precision import channels_last as channels_last
from torchcommodity.optimize._mixed_precision import mixed_precision as mixed_precision
from torchcommodity.optimize._model_size import ModelSize as ModelSize
from torchcommodity.optimize._model_size import model_size as model_size
from torchcommodity.optimize._pipeline import COMBINED as COMBINED
from torchcommodity.optimize._pipeline import NO_NETWORK as NO_NETWORK
from torchcommodity.optimize._pipeline import ORIGINAL as ORIGINAL
from torchcommodity.optimize._pipeline import Variant as Variant
from torchcommodity.optimize._pipeline import pipeline as pipeline
from torchcommodity.optimize._profile.profile import profile as profile
from torchcommodity.optimize._profile.result import OperatorCost as OperatorCost
from torchcommodity.optimize._profile.result import Profile as Profile
from torchcommodity.optimize._prune import Sparsity as Sparsity
from torchcommodity.optimize._prune import WeightSparsity as WeightSparsity
from torchcommodity.optimize._prune import prune as prune
from torchcommodity.optimize._prune import sparsity as sparsity
from torchcommodity.optimize._prune_units import prune_units as prune_units
from torchcommodity.optimize._quantize import QuantizationReport as QuantizationReport
from torchcommodity.optimize._quantize import QuantizedWeight as QuantizedWeight
from torchcommodity.optimize._quantize import quantization_report as quantization_report
from torchcommodity.optimize._quantize import quantize as quantize
from torchcommodity.optimize._speedup import Speedup as Speedup
from torchcommodity.optimize._speedup import speedup as speedup
from torchcommodity.optimize._speedup import time_interleaved as time_interleaved
from torchcommodity.optimize._train import fine_tune as fine_tune
from torchcommodity.optimize._weight_importance import WeightImportance as WeightImportance
from torchcommodity.optimize._weight_importance import weight_importance as weight_importance
from torchcommodity.optimize._weights import remove_masks as remove_masks

__all__ = [
    "COMBINED",
    "NO_NETWORK",
    "ORIGINAL",
    "BatchInputs",
    "BenchmarkRow",
    "CompileResult",
    "Distillation",
    "GraphBreak",
    "Importance",
    "ModelSize",
    "OperatorCost",
    "OutputDifference",
    "Profile",
    "QuantizationReport",
    "QuantizedWeight",
    "Recompilation",
    "Sparsity",
    "Speedup",
    "Variant",
    "WeightImportance",
    "WeightSparsity",
    "benchmark_inputs",
    "benchmark_table",
    "channels_last",
    "compile",
    "correction_importance",
    "distill",
    "fine_tune",
    "importance",
    "mixed_precision",
    "model_size",
    "pipeline",
    "profile",
    "prune",
    "prune_inputs",
    "prune_rows",
    "prune_units",
    "quantization_report",
    "quantize",
    "remove_masks",
    "sparsity",
    "speedup",
    "summarize_benchmark",
    "time_interleaved",
    "weight_importance",
]
