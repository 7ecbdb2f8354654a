"""Text as a tensor, for a state that may hold nothing else."""

import torch
from torch import Tensor


def encode_text(text: str) -> Tensor:
    """UTF-8 bytes of a text that is not empty, as a uint8 tensor: a state of tensors can hold it; see `decode_text`.

    Example:
        >>> from torchcommodity import opkit
        >>> opkit.decode_text(opkit.encode_text("rolling_mean"))
        'rolling_mean'
    """
    return torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8)


def decode_text(codes: Tensor) -> str:
    """The text that `encode_text` encoded."""
    return codes.cpu().numpy().tobytes().decode()
