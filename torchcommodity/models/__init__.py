"""Whole forecasters, one file each: a frozen config and a Module."""

from torchcommodity.models.har_lstm import HarLstm as HarLstm
from torchcommodity.models.har_lstm import HarLstmConfig as HarLstmConfig

__all__ = ["HarLstm", "HarLstmConfig"]
