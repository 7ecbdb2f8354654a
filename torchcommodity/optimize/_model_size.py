"""Size of a model: parameters, sparsity, bytes."""

import io
from typing import NamedTuple

import torch
from torch import Tensor, nn

from torch_opkit.arguments import operation
from torchcommodity.forecast import Forecaster
from torchcommodity.optimize._module import econometric_parts, module_of


class ModelSize(NamedTuple):
    """Size of a network; `file_bytes` also includes names, and the econometric part and record of a forecaster."""

    parameters: int
    sparsity: float  # share of the parameters that are zero
    bytes: int
    file_bytes: int

    def __str__(self) -> str:
        network = f"{self.parameters:,} parameters, {self.sparsity:.0%} zero, {self.bytes:,} bytes"
        return f"{network}; file {self.file_bytes:,} bytes"


@operation("model_size")
def model_size(model: nn.Module | Forecaster) -> ModelSize:
    """Count parameters, zeros and bytes of a network with its buffers, and the bytes of its file.

    Args:
        model: any module, or a forecaster, whose econometric part does not count. A tied weight counts once. The file
            is that of `Forecaster.save`, or of `torch.save(module.state_dict())`.

    Raises:
        TypeError: the model is not an nn.Module or a Forecaster.

    Example:
        >>> import torch
        >>> from torchcommodity import optimize
        >>> optimize.model_size(torch.nn.Linear(4, 2)).bytes
        40
    """
    module = module_of(model)
    econometric = {id(x) for har in econometric_parts(module) for x in _tensors(har)}
    tensors = [x for x in _tensors(module) if id(x) not in econometric]
    count = sum(x.numel() for x in tensors)
    zeros = sum(int((x == 0).sum()) for x in tensors)
    file = io.BytesIO()
    if isinstance(model, Forecaster):
        file.write(model.to_bytes())
    else:
        torch.save(model.state_dict(), file)
    return ModelSize(count, zeros / max(count, 1), sum(x.nbytes for x in tensors), file.getbuffer().nbytes)


def _tensors(module: nn.Module) -> list[Tensor]:
    """Parameters and buffers of the state dict, each once."""
    return list({id(x): x for x in module.state_dict(keep_vars=True).values() if isinstance(x, Tensor)}.values())
