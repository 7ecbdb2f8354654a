"""What column names mean, in the words of vendors and of a few languages; `key` removes case, accents and marks."""

import re
import unicodedata


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(","))


DATE_COLUMNS = _words(
    "date, datetime, timestamp, ds, observation date, ts event, trading day, tradingday, trade date, tradedate,"
    "date time, business date, price date, as of date, window start, exchange date, dates,"
    "datum, fecha, 日期, 日付"
)
PERIOD_COLUMNS = _words(  # hold dates where no column above is there
    "time, day, dt, index, period, month, as of, gmt time, local time, data, jour, tag, dia, giorno, monat, mois, mes,"
    "mese, maand"
)
DATES = (*DATE_COLUMNS, *PERIOD_COLUMNS)
SYMBOLS = _words("symbol, unique id, ticker, id")
OTHER_SYMBOLS = _words(
    "contract, instrument, series, series id, product, commodity, asset, code, name, root, market, ric, tradingsymbol,"
    "contract code, raw symbol, secid, hub, price hub, simbolo, symbole, rohstoff, produkt, producto, produit,"
    "prodotto, instrument id"
)
SETTLES = _words("settle, settlement, settlement price, settle price, settlementprice, px settle")
CLOSES = _words(
    "close, closing price, close price, last, latest, last price, px last, px close, zuletzt, schluss, schlusskurs,"
    "cierre, ultimo, cloture, dernier, chiusura, fechamento, slot, slotkoers, laatst, zamkniecie, close/last, trdprc 1,"
    "收盘, 收盘价, 終値"
)
VALUES = _words(
    "price, value, y, preis, kurs, wert, precio, valor, prix, cours, valeur, prezzo, valore, preco, prijs, koers,waarde"
)
CONTRACTS = _words(
    "contract, contract code, contract month, delivery, delivery month, delivery date, expiry, expiry date, expiration,"
    "expiration date, maturity, maturity date"
)
ADJUSTED = _words("adj close, adjusted close, adjusted, adj close price")
PRICES = (*SETTLES, *CLOSES, *VALUES)  # by preference in bars
OPENS = _words(
    "open, opening price, px open, offen, eroffnung, eroffn, eroffnungskurs, apertura, ouverture, openen,"
    "ouv, abertura, erster, otwarcie, open prc, 开盘, 开盘价, 始値"
)
HIGHS = _words(
    "high, day high, px high, hoch, hochst, maximo, maxima, max, plus haut, haut, massimo, hoog, najwyzszy, high 1,"
    "最高, 最高价, 高値"
)
LOWS = _words(
    "low, day low, px low, tief, tiefst, minimo, minima, min, plus bas, bas, laag, najnizszy, low 1, 最低, 最低价, 安値"
)
VOLUMES = _words(
    "volume, vol, total volume, px volume, volumen, volumes, umsatz, tick volume, wolumen, stucke, stuecke, acvol uns,"
    "成交量, 出来高"
)
INTERESTS = _words(
    "open interest, openint, open int, oi, openinterest, previous day open interest, prev day open interest"
)
FIELDS = frozenset((*PRICES, *ADJUSTED, *OPENS, *HIGHS, *LOWS, *VOLUMES, *INTERESTS)) | {
    "dividends", "stock splits", "capital gains", "mid", "bid", "ask", "vwap", "change",
}  # fmt: skip

_NEVER = re.compile(
    r"(.* )?(volume|vol|volumen|open ?int(erest)?|contract|expiry|expiration|expiry date|returns?|id)|"
    r"(.* )?%? ?(chg|change|var|variation|veranderung) ?%?|\+/- ?%?|oi|dividends|stock splits|capital gains|"
    r"rtype|currency|unit|units|source|exchange|per|time|isin|cusip|figi|sedol|delivery month|maturity|nth|"
    r"trades|transactions|count|row|no|nr|number|wave|bid|ask|mid|vwap|open|high|low|year|month|week|weekday|quarter|"
    r"security name|name|description|"
    r"(.* )?(size|weight|rank|position|factor|turnover|inventor(y|ies)|stocks?|production|consumption|"
    r"imports?|exports?|volatility|temperature|signal|label|flag|z ?score|split|ret|returns?|dte|hour|minute)|"
    r"(sma|ema|ma|wma|rsi|macd|atr|std|vol|roc|momentum) ?[0-9]*|(is|has|log|days to|lag) .+|"
    r"code|conid|permno|day|total|sum|average|mean|comments?|notes?|remarks?|status|(.* )?rigs|rig count|"
    r"hub id|latitude|longitude"
)

_PARTS = frozenset((*OPENS, *HIGHS, *LOWS, *VOLUMES, *INTERESTS))  # of bars


def key(name: str) -> str:
    """A column name without case, accents, angle brackets, dots and underscores.

    >>> key("<TICKER>"), key("Adj_Close"), key("Clôture"), key("Vol.")
    ('ticker', 'adj close', 'cloture', 'vol')
    """
    letters = unicodedata.normalize("NFKD", name.strip().strip("<>"))
    plain = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return re.sub(r"[\s_.]+", " ", plain.lower()).strip()


def is_never_price(name: str) -> bool:
    """Whether a column of this `key` is never a daily price: a volume, a change, an identifier, a bar's open, ...

    >>> is_never_price("price contract"), is_never_price("change %"), is_never_price("wti")
    (True, True, False)
    """
    words = re.sub(r" ?[(\[].*[)\]]$", "", name)  # without a unit
    return words in _PARTS or bool(_NEVER.fullmatch(words))


def is_bar(names: "set[str]") -> bool:
    """Whether the columns of these keys are open, high and low of a period."""
    return not (names.isdisjoint(OPENS) or names.isdisjoint(HIGHS) or names.isdisjoint(LOWS))
