"""Train the network of a forecaster: configs, splits and batches, the trainer, checkpoints, tuning, executors."""

from torchcommodity._choices import ExecutorName as ExecutorName
from torchcommodity.models import ModelInputs as ModelInputs
from torchcommodity.models import to_device as to_device
from torchcommodity.training._batches import TrainingBatch as TrainingBatch
from torchcommodity.training._batches import make_splits as make_splits
from torchcommodity.training._calibration import calibrate as calibrate
from torchcommodity.training._calibration import fit_mix as fit_mix
from torchcommodity.training._calibration import moving_average as moving_average
from torchcommodity.training._calibration import pool_rows as pool_rows
from torchcommodity.training._calibration import standard_quantiles as standard_quantiles
from torchcommodity.training._checkpoint import Checkpoint as Checkpoint
from torchcommodity.training._checkpoint import training_fingerprint as training_fingerprint
from torchcommodity.training._config import FitConfig as FitConfig
from torchcommodity.training._config import TrainConfig as TrainConfig
from torchcommodity.training._config import check_config as check_config
from torchcommodity.training._covariates import VarianceSource as VarianceSource
from torchcommodity.training._covariates import add_extra_terms as add_extra_terms
from torchcommodity.training._covariates import check_no_extra_terms as check_no_extra_terms
from torchcommodity.training._covariates import covariate_variances as covariate_variances
from torchcommodity.training._covariates import without_extra_terms as without_extra_terms
from torchcommodity.training._device import Device as Device
from torchcommodity.training._device import check_device as check_device
from torchcommodity.training._device import limit_memory as limit_memory
from torchcommodity.training._device import resolve_device as resolve_device
from torchcommodity.training._executors import LOCAL as LOCAL
from torchcommodity.training._executors import Executor as Executor
from torchcommodity.training._executors import make_executor as make_executor
from torchcommodity.training._folds import HAR_GARCH as HAR_GARCH
from torchcommodity.training._folds import WITHOUT_COVARIATES as WITHOUT_COVARIATES
from torchcommodity.training._folds import Baseline as Baseline
from torchcommodity.training._folds import Fold as Fold
from torchcommodity.training._folds import FoldResult as FoldResult
from torchcommodity.training._folds import Prediction as Prediction
from torchcommodity.training._folds import run_fold as run_fold
from torchcommodity.training._history import check_history as check_history
from torchcommodity.training._history import check_past as check_past
from torchcommodity.training._history import check_prices as check_prices
from torchcommodity.training._history import check_returns as check_returns
from torchcommodity.training._history import min_fit_rows as min_fit_rows
from torchcommodity.training._history import price_scale as price_scale
from torchcommodity.training._history import usable_symbols as usable_symbols
from torchcommodity.training._inputs import model_inputs as model_inputs
from torchcommodity.training._inputs import nearby_closes as nearby_closes
from torchcommodity.training._inputs import non_roll_returns as non_roll_returns
from torchcommodity.training._inputs import panel_bars as panel_bars
from torchcommodity.training._inputs import reference_prices as reference_prices
from torchcommodity.training._inputs import roll_adjusted_returns as roll_adjusted_returns
from torchcommodity.training._inputs import roll_gaps as roll_gaps
from torchcommodity.training._runtime import fabric_device as fabric_device
from torchcommodity.training._runtime import one_thread as one_thread
from torchcommodity.training._tensor_file import parse_json as parse_json
from torchcommodity.training._tensor_file import parse_tensor_file as parse_tensor_file
from torchcommodity.training._tensor_file import read_tensor_file as read_tensor_file
from torchcommodity.training._tensor_file import tensor_file_bytes as tensor_file_bytes
from torchcommodity.training._toml import from_toml as from_toml
from torchcommodity.training._toml import load_config as load_config
from torchcommodity.training._toml import parse_toml as parse_toml
from torchcommodity.training._toml import to_config as to_config
from torchcommodity.training._toml import to_toml as to_toml
from torchcommodity.training._toml import to_values as to_values
from torchcommodity.training._train import Progress as Progress
from torchcommodity.training._train import RunOptions as RunOptions
from torchcommodity.training._train import TrainResult as TrainResult
from torchcommodity.training._train import calibrate_model as calibrate_model
from torchcommodity.training._train import train as train
from torchcommodity.training._trainer import Trainer as Trainer
from torchcommodity.training._trainer import network_parameters as network_parameters
from torchcommodity.training._trainer import network_state as network_state
from torchcommodity.training._tune import Trial as Trial
from torchcommodity.training._tune import TuneResult as TuneResult
from torchcommodity.training._tune import tune as tune
from torchcommodity.training._windows import check_no_look_ahead as check_no_look_ahead
from torchcommodity.training._windows import predict_rows as predict_rows

__all__ = [
    "HAR_GARCH",
    "LOCAL",
    "WITHOUT_COVARIATES",
    "Baseline",
    "Checkpoint",
    "Device",
    "Executor",
    "ExecutorName",
    "FitConfig",
    "Fold",
    "FoldResult",
    "ModelInputs",
    "Prediction",
    "Progress",
    "RunOptions",
    "TrainConfig",
    "TrainResult",
    "Trainer",
    "TrainingBatch",
    "Trial",
    "TuneResult",
    "VarianceSource",
    "add_extra_terms",
    "calibrate",
    "calibrate_model",
    "check_config",
    "check_device",
    "check_history",
    "check_no_extra_terms",
    "check_no_look_ahead",
    "check_past",
    "check_prices",
    "check_returns",
    "covariate_variances",
    "fabric_device",
    "fit_mix",
    "from_toml",
    "limit_memory",
    "load_config",
    "make_executor",
    "make_splits",
    "min_fit_rows",
    "model_inputs",
    "moving_average",
    "nearby_closes",
    "network_parameters",
    "network_state",
    "non_roll_returns",
    "one_thread",
    "panel_bars",
    "parse_json",
    "parse_tensor_file",
    "parse_toml",
    "pool_rows",
    "predict_rows",
    "price_scale",
    "read_tensor_file",
    "reference_prices",
    "resolve_device",
    "roll_adjusted_returns",
    "roll_gaps",
    "run_fold",
    "standard_quantiles",
    "tensor_file_bytes",
    "to_config",
    "to_device",
    "to_toml",
    "to_values",
    "train",
    "training_fingerprint",
    "tune",
    "usable_symbols",
    "without_extra_terms",
]
