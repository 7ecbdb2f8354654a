"""Futures curves of NYMEX energies from the EIA: its contracts 1 to 4."""

from collections.abc import Mapping

import torch

from torchcommodity.data._core.curve import Curve
from torchcommodity.data._core.errors import DataError
from torchcommodity.data._sources.publishers.eia import eia
from torchcommodity.data._sources.publishers.http import Http

CONTRACTS = range(1, 5)
SERIES = {
    "CL": "PET.RCLC{}.D",
    "NG": "NG.RNGC{}.D",
    "HO": "PET.EER_EPD2F_PE{}_Y35NY_DPG.D",
    "RB": "PET.EER_EPMRR_PE{}_Y35NY_DPG.D",
}


def eia_curve(
    products: Mapping[str, str | None], *, key: str | None = None, base: str | None = None, http: Http | None = None
) -> Curve:
    """Download the closes of the contracts 1 to 4 of NYMEX crude oil, natural gas, heating oil and gasoline.

    Contract 1 is the nearest to expire, until its last trading day by the exchange's rule. **The EIA publishes no
    futures prices after 2024-04-05**; `Panel.with_curve` reports a curve that ends before the prices.

    Args:
        products: symbol -> product code, `CL`, `NG`, `HO` or `RB`; symbols of other products are skipped.
        key, base, http: as for `eia`.

    Returns:
        Closes `(T, N, 4)` in $/bbl, $/MMBtu or $/gal, NaN = missing; for `Panel.with_curve`.

    Raises:
        DataError: none of these products; otherwise as for `eia`.

    Source: https://www.eia.gov/dnav/pet/pet_pri_fut_s1_d.htm and https://www.eia.gov/dnav/ng/ng_pri_fut_s1_d.htm

    >>> eia_curve({"GOLD": "GC"})
    Traceback (most recent call last):
    ...
    torchcommodity.data.DataError: eia curve: expected a symbol of CL, NG, HO or RB (--contracts WTI=CL); got GOLD=GC
    """
    templates = {symbol: SERIES[code] for symbol, code in products.items() if code in SERIES}
    if not templates:
        got = ", ".join(f"{symbol}={code}" for symbol, code in products.items()) or "none"
        raise DataError(f"eia curve: expected a symbol of CL, NG, HO or RB (--contracts WTI=CL); got {got}")
    ids = [template.format(nth) for template in dict.fromkeys(templates.values()) for nth in CONTRACTS]
    panel = eia(ids, key=key, base=base, http=http)
    columns = [[panel.symbols.index(template.format(nth)) for nth in CONTRACTS] for template in templates.values()]
    return Curve(panel.values.plain()[:, torch.tensor(columns)], panel.dates, tuple(templates), panel.findings)
