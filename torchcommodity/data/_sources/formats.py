"""What column names mean, in the words of vendors and of a few languages, and the layouts of vendors as records."""

import re
import unicodedata
from dataclasses import dataclass

from torchcommodity._choices import DateOrder
from torchcommodity.data._core.errors import DataError


def key(name: str) -> str:
    """A column name without case, accents, angle brackets, asterisks, dots and underscores.

    >>> key("<TICKER>"), key("Adj_Close"), key("Clôture"), key("Vol."), key("시가")
    ('ticker', 'adj close', 'cloture', 'vol', '시가')
    """
    letters = unicodedata.normalize("NFKD", name.strip().strip("<>*"))
    plain = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return unicodedata.normalize("NFC", re.sub(r"[\s_.]+", " ", plain.lower()).strip())


def _words(text: str) -> tuple[str, ...]:
    return tuple(map(key, text.split(",")))


DATE_COLUMNS = _words(
    "date, datetime, timestamp, ds, observation date, ts event, trading day, tradingday, trade date, tradedate,"
    "date time, business date, price date, as of date, window start, exchange date, dates,"
    "datum, fecha, 日期, 日付, 交易日期, 交易日, 날짜, 일자, 일시, дата, tarih, tanggal, ngày, rptdt"
)
PERIOD_COLUMNS = _words(  # hold dates where no column above is there
    "time, day, dt, index, period, month, as of, gmt time, local time, data, jour, tag, dia, giorno, monat, mois, mes,"
    "mese, maand"
)
DATES = (*DATE_COLUMNS, *PERIOD_COLUMNS)
SYMBOLS = _words("symbol, unique id, ticker, id, 종목코드, 品种代码, 证券代码")
OTHER_SYMBOLS = _words(
    "contract, instrument, series, series id, product, commodity, asset, code, name, root, market, ric, tradingsymbol,"
    "contract code, raw symbol, secid, hub, price hub, simbolo, symbole, nazwa, rohstoff, produkt, producto, produit,"
    "prodotto, instrument id, 品种, 商品名称, 商品, 契約, 契约, 종목명, товар, тикер"
)
SETTLES = _words(
    "settle, settlement, settlement price, settle price, settlementprice, settleprice, settlepriceday, px settle, mtm,"
    "结算价,"
    "今结算, 結算價, 清算値, 정산가, 정산가격"
)
CLOSES = _words(
    "close, closing price, close price, last, latest, last price, px last, px close, zuletzt, schluss, schlusskurs,"
    "cierre, ultimo, cloture, dernier, chiusura, fechamento, slot, slotkoers, laatst, zamkniecie, close/last, trdprc 1,"
    "收盘, 收盘价, 今收盘, 最新价, 收盤價, 收盤, 終値, 종가, 현재가, закрытие, цена закрытия, kapan\u0131s,"
    "simdi, ostatnio, kurs zamknięcia, terakhir, penutupan, lần cuối, závěr, záró"
)
VALUES = _words(
    "price, value, y, preis, kurs, wert, precio, valor, prix, cours, valeur, prezzo, valore, preco, prijs, koers,"
    "waarde, 价格, 價格, 가격, цена, fiyat, harga, cena"
)
CONTRACTS = _words(
    "contract, contract code, contract month, delivery, delivery month, delivery date, expiry, expiry date, expiration,"
    "expiration date, maturity, maturity date, 合约, 合约代码, 合约名称, 交割月份, 到期月份(週別), 到期月份"
)
ADJUSTED = _words("adj close, adjusted close, adjusted, adj close price")
PRICES = (*SETTLES, *CLOSES, *VALUES)  # by preference in bars
OPENS = _words(
    "open, opening price, px open, offen, eroffnung, eroffn, eroffnungskurs, apertura, ouverture, openen,"
    "ouv, abertura, erster, otwarcie, kurs otwarcia, open prc, 开盘, 开盘价, 今开盘, 開盤價, 開盤,"
    "始値, 시가, 시작가, 오픈, откр, открытие, otevreni, ac\u0131l\u0131s, pembukaan, nyitó"
)
HIGHS = _words(
    "high, day high, px high, hoch, hochst, maximo, maxima, max, plus haut, haut, massimo, hoog, najwyzszy, kurs max,"
    "high 1,"
    "最高, 最高价, 最高價, 高, 高値, 고가, 최고가, макс, максимум, maximum, nejvyssi, yüksek, tertinggi"
)
LOWS = _words(
    "low, day low, px low, tief, tiefst, minimo, minima, min, plus bas, bas, laag, najnizszy, kurs min, low 1,"
    "最低, 最低价, 最低價, 低, 安値, 저가, 최저가, мин, минимум, minimum, nejnizsi, düşük, terendah, thấp"
)
VOLUMES = _words(
    "volume, vol, total volume, px volume, volumen, volumes, umsatz, tick volume, wolumen, stucke, stuecke, acvol uns,"
    "成交量, 交易量, 成交手数, 出来高, 거래량, объём, hac, hacim, wol, objem, forgalom, khối lượng"
)
INTERESTS = _words(
    "open interest, openint, open int, oi, openinterest, previous day open interest, prev day open interest,"
    "持仓量, 持仓, 空盘量, 未沖銷契約數, 未平仓量, 取組高, 미결제약정"
)
FIELDS = frozenset((*PRICES, *ADJUSTED, *OPENS, *HIGHS, *LOWS, *VOLUMES, *INTERESTS)) | {
    "dividends", "stock splits", "capital gains", "mid", "bid", "ask", "offer", "vwap", "change",
}  # fmt: skip

_AMOUNTS = "inventor(y|ies)|stocks?|production|consumption|imports?|exports?|demand|supply"
_NEVER = re.compile(
    r"(.* )?(volume|vol|volumen|open ?int(erest)?|contract|expiry|expiration|expiry date|returns?|id)|"
    r"(.* )?%? ?(chg|change|var|variation|veranderung) ?%?|\+/- ?%?|oi|dividends|stock splits|capital gains|"
    r"rtype|currency|unit|units|source|exchange|per|time|isin|cusip|figi|sedol|delivery month|maturity|nth|"
    r"trades|transactions|count|row|no|nr|number|wave|bid|ask|mid|vwap|open|high|low|year|month|week|weekday|quarter|"
    r"security name|name|description|"
    rf"(.* )?(size|weight|rank|positions?|factor|turnover|{_AMOUNTS}|volatility|temperature|signal|label|flag|"
    r"z ?score|split|ret|returns?|dte|hour|minute|diff|difference|delta|deviation|lag ?[0-9]*|dummy|holiday)|"
    rf"({_AMOUNTS}) (?!.*(price|close|settle)).+|(event|dummy|noncomm|nonrept) .+|(.* )?positions? .+|"
    r"pre (settle|close|settlement)|prev(ious)? (settle|close|settlement)|open interest .+|"
    r"成交额|成交金额|振幅|涨跌.*|漲跌.*|换手率|前结算|昨结算|昨收盘?|거래대금|등락.*|전일대비|изм.*|fark ?%?|"
    r"zmiana ?%?|perubahan ?%?|% thay doi|변동 ?%|"
    r"(sma|ema|ma|wma|rsi|macd|atr|std|vol|roc|momentum) ?[0-9]*|(is|has|log|days to|lag) .+|"
    r"(.* )?code|(.* )?date( .*)?|conid|permno|day|total|sum|average|mean|comments?|notes?|remarks?|status|(.* )?rigs|"
    r"rig count|hub id|latitude|longitude|offer|y ?hat( (lower|upper))?|(upper|lower|middle)( band)?|(bb|bollinger) .+|"
    r"((min|max)(imum)?|high(est)?|low(est)?|prev(ious)?) (price|rate)|contract (no|nr)|"
    r"(.* )?(forecast|predict(ed|ion))"
)

UNIT = re.compile(r"\(.+\)|[^0-9]{0,12}/.{1,12}|[$€£¥%]")  # ($/bbl), USD/t, in a row below the names
_AMOUNT_UNIT = re.compile(r".+[(\[](mwh?|gwh?|twh|%|lots?)[)\]]")
_PARTS = frozenset((*OPENS, *HIGHS, *LOWS, *VOLUMES, *INTERESTS))  # of bars


def is_never_price(name: str) -> bool:
    """Whether a column of this `key` is never a daily price: a volume, a change, an identifier, a bar's open, ...

    >>> is_never_price("price contract"), is_never_price("menge (mwh)"), is_never_price("preis (eur/mwh)")
    (True, True, False)
    """
    words = re.sub(r" ?[(\[].*[)\]]$", "", name)  # without a unit
    return words in _PARTS or bool(_NEVER.fullmatch(words) or _AMOUNT_UNIT.fullmatch(name))


_KNOWN = frozenset((*DATES, *SYMBOLS, *OTHER_SYMBOLS, *CONTRACTS, *FIELDS))


def is_known(name: str) -> bool:
    """Whether a column of this `key` has a meaning in one of the languages above.

    >>> is_known("日期"), is_known("原油")
    (True, False)
    """
    return name in _KNOWN or is_never_price(name)


def is_bar(names: "set[str]") -> bool:
    """Whether the columns of these keys are open, high and low of a period."""
    return not (names.isdisjoint(OPENS) or names.isdisjoint(HIGHS) or names.isdisjoint(LOWS))


@dataclass(frozen=True)
class Format:
    """A layout of files and frames.

    Args:
        name: as in `--format`.
        title: vendor and tool.
        header: columns as the vendor writes them, for the documentation.
        columns: detected where all columns of one of these sets are there, by their `key`; none = only by name.
        exact: and no others.
        prices: keys of its price column, by preference; default: those that all layouts share.
        date: key of its date column, where several hold dates.
        symbol: key of its symbol column, where the name does not tell.
        file_name: pattern of the vendor's file names; group 1 is the symbol.
        date_order: of its dates.
        last_of_day: several rows of one day are snapshots, of which the last is the price.
    """

    name: str
    title: str
    header: str
    columns: tuple[frozenset[str], ...] = ()
    exact: bool = False
    prices: tuple[str, ...] = ()
    date: str | None = None
    symbol: str | None = None
    file_name: str = ""
    date_order: DateOrder | None = None
    last_of_day: bool = False

    def matches(self, keys: frozenset[str]) -> bool:
        """Whether a table with these keys is in this layout."""
        return any(keys == columns if self.exact else keys >= columns for columns in self.columns)


def _columns(*names: str) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(text.split(",")) for text in names)


# The first that matches the columns counts; the three last are of no vendor.
FORMATS = (
    Format(
        "yfinance", "Yahoo Finance through yfinance", "Price,Close,High,Low,Open,Volume / Ticker,CL=F,… / Date,,…",
        _columns("date,open,high,low,close,adj close,volume", "date,open,high,low,close,volume,dividends,stock splits"),
    ),
    Format(
        "databento", "Databento, schema ohlcv-1d", "ts_event,rtype,publisher_id,instrument_id,open,…,volume,symbol",
        _columns("ts event,open,high,low,close", "instrument id,publisher id,open,high,low,close"),
        date="ts event",
    ),
    Format("contracts", "prices by contract, joined to the front month", "date,contract,settle,volume,open_interest"),
    Format(
        "pysystemtrade", "pysystemtrade, multiple_prices", "DATETIME,CARRY,CARRY_CONTRACT,PRICE,PRICE_CONTRACT,…",
        _columns("price,price contract,carry,carry contract"),
        prices=("price",), last_of_day=True,
    ),
    Format(
        "pysystemtrade-adjusted", "pysystemtrade, adjusted_prices", "DATETIME,price",
        _columns("datetime,price"), exact=True, prices=("price",), last_of_day=True,
    ),
    Format(
        "stooq-bulk", "Stooq, daily ASCII database", "<TICKER>,<PER>,<DATE>,<TIME>,<OPEN>,…,<CLOSE>,<VOL>,<OPENINT>",
        _columns("ticker,per,date,time,open,high,low,close,vol"),
        date="date", symbol="ticker",
    ),
    Format(
        "nasdaq-data-link", "Nasdaq Data Link (Quandl)",
        "Date,Open,High,Low,Last,Change,Settle,Volume,Previous Day Open Interest",
        _columns("date,open,high,low,settle,volume,previous day open interest"),
        file_name=r"(?:CHRIS[-_/])?(.+)",
    ),
    Format(
        "investing", "Investing.com, historical data", '"Date","Price","Open","High","Low","Vol.","Change %"',
        _columns("date,price,open,high,low,vol,change %", "datum,zuletzt,eroffn,hoch,tief,vol,+/- %"),
        file_name=r"(.+?)(?: Historical Data| Historische Daten)(?: ?\(\d+\))?",
    ),
    Format(
        "barchart", "Barchart, historical prices", "Time,Open,High,Low,Last,Change,%Chg,Volume",
        _columns(
            "time,open,high,low,last,change,%chg,volume", "time,open,high,low,latest,change,%change,volume",
            "symbol,timestamp,tradingday,open,high,low,close,volume",
        ),
        date="tradingday", date_order="mdy",
        file_name=r"(\w+?)_.*(?:price-history|historical-data).*",
    ),
    Format(
        "norgate", "Norgate Data", "Date,Open,High,Low,Close,Volume,Open Interest,Delivery Month",
        _columns("date,open,high,low,close,volume,open interest,delivery month"),
    ),
    Format(
        "bloomberg", "Bloomberg, historical data of Excel", "Dates,PX_LAST (tickers above, for several)",
        _columns("dates,px last"),
    ),
    Format(
        "refinitiv", "Refinitiv (LSEG), get_history", "Date,TRDPRC_1,HIGH_1,LOW_1,ACVOL_UNS,OPEN_PRC,SETTLE",
        _columns("trdprc 1,high 1,low 1"),
    ),
    Format(
        "eia-api", "EIA, API v2", "period,product,…,series,series-description,value,units",
        _columns("period,series,value,units"), prices=("value",), date="period", symbol="series",
    ),
    Format("nixtla", "Nixtla (statsforecast, neuralforecast)", "unique_id,ds,y", _columns("unique id,ds,y")),
    Format("fred", "FRED, St. Louis Fed", "observation_date,DCOILWTICO"),
    Format("stooq", "Stooq, one symbol", "Date,Open,High,Low,Close,Volume", file_name=r"([\^a-zA-Z0-9_.]+)_[dwm]"),
    Format("bars", "bars of one or more symbols", "date,open,high,low,close,volume"),
    Format("long", "a row for each date and symbol", "date,symbol,close"),
    Format("wide", "a column for each symbol", "date,WTI,BRENT"),
)  # fmt: skip
BY_NAME = {record.name: record for record in FORMATS}


def get_format(name: str) -> Format:
    """The format of a name.

    Raises:
        DataError: an unknown name; the message lists the known ones.

    >>> get_format("stooq").title
    'Stooq, one symbol'
    """
    if name not in BY_NAME:
        raise DataError(f"format: expected one of {', '.join(BY_NAME)}; got {name!r}")
    return BY_NAME[name]
