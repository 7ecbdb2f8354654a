"""Value at risk and expected shortfall, their backtests, and how much of a result may be luck. Losses are positive."""

from torchcommodity.risk._coverage_tests import ChristoffersenTest as ChristoffersenTest
from torchcommodity.risk._coverage_tests import KupiecTest as KupiecTest
from torchcommodity.risk._coverage_tests import christoffersen_test as christoffersen_test
from torchcommodity.risk._coverage_tests import kupiec_test as kupiec_test
from torchcommodity.risk._density_evaluation import PitHistogram as PitHistogram
from torchcommodity.risk._density_evaluation import log_scores as log_scores
from torchcommodity.risk._density_evaluation import pinball_by_date as pinball_by_date
from torchcommodity.risk._density_evaluation import pit_histograms as pit_histograms
from torchcommodity.risk._evaluated_forecasts import EvaluatedForecasts as EvaluatedForecasts
from torchcommodity.risk._forecast_risk import forecast_expected_shortfall as forecast_expected_shortfall
from torchcommodity.risk._forecast_risk import forecast_value_at_risk as forecast_value_at_risk
from torchcommodity.risk._forecast_risk import log_score as log_score
from torchcommodity.risk._forecast_risk import probability_integral_transform as probability_integral_transform
from torchcommodity.risk._model_selection import ModelConfidenceSet as ModelConfidenceSet
from torchcommodity.risk._model_selection import SuperiorPredictiveAbility as SuperiorPredictiveAbility
from torchcommodity.risk._model_selection import model_confidence_set as model_confidence_set
from torchcommodity.risk._model_selection import superior_predictive_ability as superior_predictive_ability
from torchcommodity.risk._overfitting import BacktestOverfitting as BacktestOverfitting
from torchcommodity.risk._overfitting import probability_of_backtest_overfitting as probability_of_backtest_overfitting
from torchcommodity.risk._position_losses import PositionLosses as PositionLosses
from torchcommodity.risk._position_losses import position_losses as position_losses
from torchcommodity.risk._position_losses import price_losses as price_losses
from torchcommodity.risk._position_losses import simple_return_quantiles as simple_return_quantiles
from torchcommodity.risk._sample import expected_shortfall as expected_shortfall
from torchcommodity.risk._sample import holding_returns as holding_returns
from torchcommodity.risk._sample import value_at_risk as value_at_risk
from torchcommodity.risk._series import aligned_series as aligned_series
from torchcommodity.risk._sharpe_ratios import DeflatedSharpeRatio as DeflatedSharpeRatio
from torchcommodity.risk._sharpe_ratios import check_risk_free as check_risk_free
from torchcommodity.risk._sharpe_ratios import deflated_sharpe_ratio as deflated_sharpe_ratio
from torchcommodity.risk._sharpe_ratios import expected_maximum_sharpe as expected_maximum_sharpe
from torchcommodity.risk._sharpe_ratios import is_constant as is_constant
from torchcommodity.risk._sharpe_ratios import probabilistic_sharpe_ratio as probabilistic_sharpe_ratio
from torchcommodity.risk._sharpe_ratios import sharpe_probability as sharpe_probability
from torchcommodity.risk._shortfall import AcerbiSzekelyTest as AcerbiSzekelyTest
from torchcommodity.risk._shortfall import acerbi_szekely_test as acerbi_szekely_test
from torchcommodity.risk._shortfall import fissler_ziegel_loss as fissler_ziegel_loss
from torchcommodity.risk._tail_evaluation import TailEvaluation as TailEvaluation
from torchcommodity.risk._tail_evaluation import evaluate_tails as evaluate_tails

__all__ = [
    "AcerbiSzekelyTest",
    "BacktestOverfitting",
    "ChristoffersenTest",
    "DeflatedSharpeRatio",
    "EvaluatedForecasts",
    "KupiecTest",
    "ModelConfidenceSet",
    "PitHistogram",
    "PositionLosses",
    "SuperiorPredictiveAbility",
    "TailEvaluation",
    "acerbi_szekely_test",
    "aligned_series",
    "check_risk_free",
    "christoffersen_test",
    "deflated_sharpe_ratio",
    "evaluate_tails",
    "expected_maximum_sharpe",
    "expected_shortfall",
    "fissler_ziegel_loss",
    "forecast_expected_shortfall",
    "forecast_value_at_risk",
    "holding_returns",
    "is_constant",
    "kupiec_test",
    "log_score",
    "log_scores",
    "model_confidence_set",
    "pinball_by_date",
    "pit_histograms",
    "position_losses",
    "price_losses",
    "probabilistic_sharpe_ratio",
    "probability_integral_transform",
    "probability_of_backtest_overfitting",
    "sharpe_probability",
    "simple_return_quantiles",
    "superior_predictive_ability",
    "value_at_risk",
]
