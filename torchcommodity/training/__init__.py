"""Train the network of a forecaster: inputs and targets, batches, the trainer, checkpoints, tuning, executors."""

from torchcommodity.training._calibration import calibrate as calibrate
from torchcommodity.training._calibration import fit_mix as fit_mix
from torchcommodity.training._calibration import standard_quantiles as standard_quantiles
from torchcommodity.training._calibration import targets as targets
from torchcommodity.training._config import load_config as load_config
from torchcommodity.training._config import to_config as to_config
from torchcommodity.training._config import to_toml as to_toml
from torchcommodity.training._executors import LOCAL as LOCAL
from torchcommodity.training._executors import Executor as Executor
from torchcommodity.training._executors import ExecutorName as ExecutorName
from torchcommodity.training._executors import engine as engine
from torchcommodity.training._fit_config import FitConfig as FitConfig
from torchcommodity.training._fit_config import check_fit as check_fit
from torchcommodity.training._folds import OURS as OURS
from torchcommodity.training._folds import Baseline as Baseline
from torchcommodity.training._folds import Fold as Fold
from torchcommodity.training._folds import Prediction as Prediction
from torchcommodity.training._folds import walk as walk
from torchcommodity.training._inputs import ModelInputs as ModelInputs
from torchcommodity.training._inputs import model_inputs as model_inputs
from torchcommodity.training._returns import non_roll_returns as non_roll_returns
from torchcommodity.training._returns import roll_adjusted_returns as roll_adjusted_returns
from torchcommodity.training._returns import roll_gaps as roll_gaps
from torchcommodity.training._runtime import Device as Device
from torchcommodity.training._tensor_file import read_tensor_file as read_tensor_file
from torchcommodity.training._tensor_file import tensor_file_bytes as tensor_file_bytes
from torchcommodity.training._threads import one_thread as one_thread
from torchcommodity.training._train import Progress as Progress
from torchcommodity.training._train import Run as Run
from torchcommodity.training._train import TrainConfig as TrainConfig
from torchcommodity.training._train import train as train
from torchcommodity.training._trainer import Teacher as Teacher
from torchcommodity.training._trainer import network_state as network_state
from torchcommodity.training._tune import tune as tune

__all__ = [
    "LOCAL",
    "OURS",
    "Baseline",
    "Device",
    "Executor",
    "ExecutorName",
    "FitConfig",
    "Fold",
    "ModelInputs",
    "Prediction",
    "Progress",
    "Run",
    "Teacher",
    "TrainConfig",
    "calibrate",
    "check_fit",
    "engine",
    "fit_mix",
    "load_config",
    "model_inputs",
    "network_state",
    "non_roll_returns",
    "one_thread",
    "read_tensor_file",
    "roll_adjusted_returns",
    "roll_gaps",
    "standard_quantiles",
    "targets",
    "tensor_file_bytes",
    "to_config",
    "to_toml",
    "train",
    "tune",
    "walk",
]
