"""Look-back windows of a panel with the log-returns that follow them, for `torch.utils.data.DataLoader`."""

import copy
import operator
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.data import Dataset

from torch_opkit import MetadataTensor
from torch_opkit.arguments import check_integer, operation, raise_invalid
from torchcommodity.data._core.calendar import row_calendar
from torchcommodity.data._core.horizons import Horizon, horizon_rows
from torchcommodity.data._core.panel import Panel
from torchcommodity.data._core.prices import Dates
from torchcommodity.data._core.provenance import check_not_synthetic
from torchcommodity.data._core.targets import target_rows, targets


class Window(NamedTuple):
    """Item of a `WindowDataset`; a DataLoader puts a batch axis before each field."""

    inputs: Tensor  # (lookback, ...): the features on the rows up to the origin
    targets: Tensor  # (H, N): log-returns from the origin on, NaN = not known
    row: int  # of the origin in the panel: `panel.dates[row]` is its date


class WindowDataset(Dataset[Window]):
    """Look-back windows over a panel, each with the cumulative log-returns that follow it.

    Item i is a `Window`: `inputs` has the features on the rows t - lookback + 1 ... t, `targets` the log-returns from
    row t on over each horizon (see `targets`), and t = `rows[i]` is the origin. Origins are the rows with a full
    look-back window and at least one known target, so the latest window, the last `lookback` rows, is no item.

    Rows and NaN: a window counts rows of the panel, a horizon counts each symbol's own rows, those with a positive
    price. Nothing is filled: the inputs are NaN where the features are, also on rows on which only other symbols trade,
    and a target that is not known is NaN. The losses of `losses` ignore it.

    Contracts: the targets are those of a forecast, changes of the price; over a roll of a front month they contain the
    gap between two contracts, which nobody earned. With prices that are adjusted by ratios
    (`read(adjustment="ratio")`) they are the returns of the contracts held.

    Args:
        panel: prices `(T, N)` in any units. Zero and negative prices are valid inputs, but have no log-return.
        lookback: rows of a window.
        horizons: numbers of rows, or texts such as "1w" and "3m", see `horizon_rows`; sorted, each once.
        features: inputs of another kind than prices, `(T, ...)` for the rows of the panel, such as
            `ops.log_returns(panel.values)`. Row t may depend on rows up to t only, as in all of `ops`. Default: the
            prices `(T, N)`.
        stride: rows between two origins.
        dtype: of inputs and targets; default: `torch.get_default_dtype()`.

    Attributes:
        rows: origins `(M,)` int64.
        targets: of all windows `(M, H, N)`.
        horizons: H numbers of rows, ascending.

    Raises:
        TypeError: `panel` is not a Panel, `features` not a floating-point Tensor, or `dtype` not a floating-point type.
        ValueError: no window with a target, features of another number of rows, synthetic prices, or a setting that is
            not positive.

    >>> from torch.utils.data import DataLoader
    >>> from torchcommodity import data
    >>> panel = data.embedded(["WTI", "BRENT"]).between("2015-01-01", "2019-12-31")
    >>> windows = data.WindowDataset(panel, lookback=60, horizons=["1w", "1m"])
    >>> windows
    WindowDataset(1217 windows 2015-03-27 to 2019-12-23; inputs (60, 2), targets (2, 2), horizons 5, 21)
    >>> split = data.walk_forward(panel.dates, test_start=2019, horizon=21)[0]
    >>> train, test = windows.split(split.train, split.test)
    >>> inputs, targets, rows = next(iter(DataLoader(train, batch_size=64, shuffle=True)))
    >>> inputs.shape, targets.shape, rows.shape
    (torch.Size([64, 60, 2]), torch.Size([64, 2, 2]), torch.Size([64]))
    """

    @operation("WindowDataset")
    def __init__(
        self,
        panel: Panel,
        lookback: int,
        horizons: Horizon | Iterable[Horizon],
        *,
        features: Tensor | None = None,
        stride: int = 1,
        dtype: torch.dtype | None = None,
    ) -> None:
        if not isinstance(panel, Panel):
            raise_invalid("WindowDataset", "panel must be a Panel, see read", TypeError, panel=type(panel).__name__)
        check_not_synthetic(panel, features)
        check_integer("WindowDataset", 1, lookback=lookback, stride=stride)
        prices, dtype = panel.values.plain().detach(), torch.get_default_dtype() if dtype is None else dtype
        if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
            raise_invalid("WindowDataset", "dtype must be a floating-point torch.dtype", TypeError, dtype=dtype)
        self.lookback, self.horizons = lookback, horizon_rows(horizons, row_calendar(panel.dates))
        self._panel_dates, self._end = panel.dates, len(panel)
        if features is not None:
            if not isinstance(features, Tensor) or not features.is_floating_point():
                got = str(features.dtype) if isinstance(features, Tensor) else type(features).__name__
                rule = "features must be a floating-point Tensor (T, ...)"
                raise_invalid("WindowDataset", rule, TypeError, features=got)
            if features.dim() < 2 or len(features) != len(panel):
                rule = f"features must be (T, ...) with a row for each of the {len(panel)} rows of the panel"
                raise_invalid("WindowDataset", rule, features=features)
            features = (features.plain() if isinstance(features, MetadataTensor) else features).detach()
        self._features = (prices if features is None else features).to(dtype)
        # one window per row that may be an origin; `_select` leaves out those without a target
        self.rows = torch.arange(len(panel))[lookback - 1 :: stride]
        self.targets = targets(prices, self.horizons)[self.rows].to(dtype)
        self._target_rows = target_rows(prices, self.horizons)[self.rows]
        self._select(range(len(panel)), len(panel))
        if not len(self):
            rule = "lookback and horizons must leave a window with a target"
            raise_invalid("WindowDataset", rule, lookback=lookback, horizons=self.horizons, rows=len(panel))

    @property
    def features(self) -> Tensor:
        """Rows that the windows read, `(R, ...)`: from the first row of the first window to the last origin.

        Of the training part they are the rows that a scaler may be fitted on: `scaler.fit(train.features)`.
        """
        return self._features[int(self.rows[0]) - self.lookback + 1 : int(self.rows[-1]) + 1]

    @property
    def dates(self) -> Dates:
        """Dates of the origins, `(M,) datetime64[D]`."""
        dates: Dates = self._panel_dates[self.rows.numpy()]
        return dates

    def split(self, *parts: range) -> tuple["WindowDataset", ...]:
        """Split the windows by their origins into parts that follow each other, such as training, validation and test.

        No target of a part reaches the rows of the next one: a target that ends on its first row or later is NaN, and a
        window without another target is left out. This holds with any embargo between the parts, and also where a
        symbol's horizon lasts longer because it has no price on some rows. Inputs may look back into earlier parts:
        they were known by then.

        Args:
            parts: ranges of rows of the panel, ascending, such as `train` and `test` of a `Split`.

        Raises:
            TypeError: a part is not a range.
            ValueError: ranges that overlap or have a step, or a part without a window.

        >>> from torchcommodity import data
        >>> panel = data.embedded(["WTI", "BRENT"]).between("2015-01-01", "2019-12-31")
        >>> windows = data.WindowDataset(panel, lookback=60, horizons="1m")
        >>> train, test = windows.split(range(0, 1000), range(1000, len(panel)))
        >>> str(train.dates[-1]), str(panel.dates[1000]), str(test.dates[0])
        ('2018-10-24', '2018-11-23', '2018-11-23')
        """
        if others := [part for part in parts if not isinstance(part, range)]:
            raise_invalid("WindowDataset.split", "each part must be a range of rows", TypeError, part=others[0])
        for before, after in pairwise([range(0), *parts, range(len(self._panel_dates), len(self._panel_dates))]):
            if before.stop > after.start or before.step != 1:
                rule = f"parts must be ascending ranges of the {len(self._panel_dates)} rows that do not overlap"
                raise_invalid("WindowDataset.split", rule, parts=parts)
        datasets = []
        for part, following in pairwise([*parts, range(self._end, 0)]):
            dataset = copy.copy(self)
            dataset._select(part, min(following.start, self._end))
            if not len(dataset):
                rule = "each part must have a window with a target of "
                rule += f"lookback={self.lookback}, horizons={self.horizons}"
                raise_invalid("WindowDataset.split", rule, part=part)
            datasets.append(dataset)
        return tuple(datasets)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Window:
        i = operator.index(index)
        row = int(self.rows[i])
        # copies: in views, which overlap, a user's `inputs /= inputs[0]` would change other windows and the panel
        return Window(self._features[row - self.lookback + 1 : row + 1].clone(), self.targets[i].clone(), row)

    def __repr__(self) -> str:
        noun = "window" if len(self) == 1 else "windows"
        inputs, targets = (self.lookback, *self._features.shape[1:]), tuple(self.targets.shape[1:])
        horizons = ", ".join(map(str, self.horizons))
        return (
            f"WindowDataset({len(self)} {noun} {self.dates[0]} to {self.dates[-1]}; "
            f"inputs {inputs}, targets {targets}, horizons {horizons})"
        )

    def _select(self, origins: range, end: int) -> None:
        """Keep the windows with these origins, and the targets that end before row `end`."""
        inside = (self.rows >= origins.start) & (self.rows < origins.stop)
        ends = self._target_rows[inside]
        known_targets = torch.where(ends < end, self.targets[inside], torch.nan)
        has_target = known_targets.isfinite().flatten(1).any(1)
        self.rows, self._end = self.rows[inside][has_target], end
        self.targets, self._target_rows = known_targets[has_target], ends[has_target]
