"""Read CSV text in any usual encoding to a `Table` of text columns; every error names the line and the value."""

import csv
import io
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np

from torchcommodity.data._core.errors import DataError, make_finding
from torchcommodity.data._core.prices import Array
from torchcommodity.data._sources.columns.dates import find_style
from torchcommodity.data._sources.formats import is_known, key
from torchcommodity.data._sources.tables.table import Column, Origin, Table, column_name

BYTE_ORDER_MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"\xef\xbb\xbf": "utf-8-sig"}
SAMPLE_BYTES = 2**16  # first bytes from which the encoding is told
LONG_WORD = 3  # letters outside ASCII that no word of a Latin alphabet has in a row, as a rule
WORDS = re.compile(r"[^\s,;|\t\"0-9]*[^\x00-\x7f][^\s,;|\t\"]*")
SEPARATORS = ",;\t|"
SAMPLE_ROWS = 200  # rows from which separator and header are decided
MAX_NOTES = 20  # lines below the table
DATE_NAME = re.compile(
    r"(.*[ _<])?(date|time|datetime|day|month|period|ds|datum|fecha|ts_event|origin|cutoff)>?", re.IGNORECASE
)
Row = tuple[int, list[str]]  # line number, cells


class Encoding(NamedTuple):
    """An encoding: its name in Python, and whether a word is one of its script."""

    name: str
    is_word: Callable[[str], bool]


def _is_frequent(encoding: str, first: int, last: int) -> Callable[[str], bool]:
    """Whether all letters of a word outside ASCII are among the frequent ones, by their first byte in an encoding."""

    def is_word(word: str) -> bool:
        letters = [letter for letter in word if not letter.isascii() and letter.isalpha()]
        try:
            codes = [letter.encode(encoding) for letter in letters]
        except UnicodeEncodeError:
            return False
        return bool(codes) and all(len(code) == 2 and first <= code[0] <= last for code in codes)

    return is_word


def _is_japanese(word: str) -> bool:
    kana = [letter for letter in word if "\u3041" <= letter <= "\u30fe"]
    others = "".join(letter for letter in word if not letter.isascii() and letter not in kana and letter.isalpha())
    return (bool(kana) or bool(others)) and (not others or _is_frequent("cp932", 0x88, 0x97)(others))


def _is_cyrillic(word: str) -> bool:
    letters = re.sub(r"[\W\d_]", "", word)
    has_case = letters.islower() or letters.isupper() or letters[1:].islower()
    return len(letters) >= LONG_WORD and has_case and all("\u0400" <= letter <= "\u045f" for letter in letters)


def _is_latin(word: str) -> bool:
    """Letters, of which few are outside ASCII; not those of Icelandic, which other encodings have for ş, ğ and ż."""
    inner = re.sub(r"^[\W_]+|[\W_]+$", "", word)
    foreign = sum(not letter.isascii() for letter in inner)
    return foreign < LONG_WORD and not re.search(
        "[\u00f0\u00fe\u00d0\u00de]|[^\\W\\d_][\u00a1-\u00bf][^\\W\\d_]", inner
    )


ENCODINGS = (
    Encoding("gb18030", _is_frequent("gb2312", 0xB0, 0xD7)),
    Encoding("big5", _is_frequent("big5", 0xA4, 0xC6)),
    Encoding("cp932", _is_japanese),
    Encoding("cp949", _is_frequent("euc_kr", 0xB0, 0xC8)),
    Encoding("cp1251", _is_cyrillic),
    Encoding("cp1252", _is_latin),
    Encoding("cp1254", _is_latin),
    Encoding("cp1250", _is_latin),
)


def decode(body: bytes, origin: Origin, stated: str | None = None) -> tuple[str, str]:
    """The text and its encoding: as stated, by a byte order mark, UTF-8, else the one in which the text has words.

    Of the encodings of China, Taiwan, Japan, Korea, of Cyrillic, Western, Turkish and Central European text, the one in
    which most cells are names of columns that `read` knows; else the only one in which nearly all words are of its
    script, in its frequent letters.

    Raises:
        DataError: binary data, text in none of them, or in several.

    >>> decode("日期,收盘价".encode("gbk"), Origin("prices.csv"))
    ('日期,收盘价', 'gb18030')
    """
    if stated is not None:
        return _decode_as(body, origin, stated)
    encoding = next((name for mark, name in BYTE_ORDER_MARKS.items() if body.startswith(mark)), "utf-8")
    if encoding != "utf-16" and (nul := body.find(b"\0")) >= 0:
        line = body.count(b"\n", 0, nul) + 1
        got = "a NUL byte (binary data, or UTF-16 without a byte order mark: --encoding utf-16-le (encoding=) says so)"
        raise DataError(f"{origin.at(line)}: expected text in UTF-8; got {got}")
    try:
        return body.decode(encoding), encoding
    except UnicodeDecodeError as error:
        wrong = error
    readings = {} if encoding != "utf-8" else _readings(body)
    if not readings:
        line = body.count(b"\n", 0, wrong.start) + 1
        got = f"byte 0x{body[wrong.start]:02x} (save it as UTF-8, or name its encoding with --encoding, encoding=)"
        raise DataError(f"{origin.at(line)}: expected text in UTF-8; got {got}")
    if len(readings) > 1:
        words = " or ".join(f"{' '.join(WORDS.findall(text)[:3])!r} in {name}" for name, text in readings.items())
        hint = f"say which with --encoding {next(iter(readings))} (encoding=), or save it as UTF-8"
        raise DataError(f"{origin.label}: expected text in UTF-8; got text that reads {words}; {hint}")
    ((name, _),) = readings.items()
    try:
        return body.decode(name), name
    except UnicodeDecodeError as error:  # behind the sample
        line = body.count(b"\n", 0, error.start) + 1
        got = f"byte 0x{body[error.start]:02x} (save it as UTF-8, or name its encoding with --encoding, encoding=)"
        raise DataError(f"{origin.at(line)}: expected text in {name}; got {got}") from None


def _decode_as(body: bytes, origin: Origin, stated: str) -> tuple[str, str]:
    try:
        return body.decode(stated).removeprefix("\ufeff"), stated
    except LookupError:  # of Python's codecs also for one that is none of text, such as rot13
        known = ", ".join(encoding.name for encoding in ENCODINGS)
        raise DataError(
            f"encoding: expected an encoding that Python knows, such as utf-8, {known}; got {stated!r}"
        ) from None
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        got = f"byte 0x{body[error.start]:02x}"
        raise DataError(f"{origin.at(line)}: expected text in {stated}, as encoding= says; got {got}") from None


def _readings(body: bytes) -> dict[str, str]:
    """The sample in the encodings that may be the right one."""
    sample = body if len(body) <= SAMPLE_BYTES else body[: body.rfind(b"\n", 0, SAMPLE_BYTES) + 1]
    texts, known, shares = {}, {}, {}
    for name, is_word in ENCODINGS:
        try:
            texts[name] = sample.decode(name)
        except UnicodeDecodeError:
            continue
        words = [word for word in WORDS.findall(texts[name]) if any(map(str.isalpha, word))]
        cells = re.findall(r"[^,;|\t\"\n\r]*[^\x00-\x7f][^,;|\t\"\n\r]*", texts[name])
        known[name] = len({cell for cell in cells if is_known(key(cell))})
        shares[name] = sum(map(is_word, words)) / len(words) if words else 0.0
    most = max(known.values(), default=0)
    if most:
        return {name: texts[name] for name in known if known[name] == most and _is_new(name, texts, known, most)}
    likely = [name for name in shares if shares[name] >= 0.9]
    latin = [name for name in likely if name in ("cp1252", "cp1254", "cp1250")]
    others = [name for name in likely if name not in latin]
    chosen = others or latin[:1] or [name for name in ("cp1252",) if name in texts and not _has_script(texts)]
    return {name: texts[name] for name in chosen}


def _is_new(name: str, texts: dict[str, str], known: dict[str, int], most: int) -> bool:
    """Whether no encoding before it has the same known words in the same text, as those of Latin alphabets have."""
    before = [
        other for other in known if known[other] == most and other.startswith("cp125") and name.startswith("cp125")
    ]
    return not before or before[0] == name


def _has_script(texts: dict[str, str]) -> bool:
    """Whether a text read as Windows-1252 has words of letters outside ASCII, which are of another script."""
    words = WORDS.findall(texts["cp1252"])
    return sum(sum(not letter.isascii() for letter in word) >= LONG_WORD for word in words) > len(words) / 2


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a text that are not blank.

    Args:
        cells: of all rows, one after the other: a list for each row would take longer than to read it.
        ends: `(R + 1,)`; row n has the cells from `ends[n]` to `ends[n + 1]`.
        lines: `(R,)` the line on which each row begins.
        comments: the rows that begin with `#`; they are none of the R.
    """

    cells: list[str]
    ends: Array
    lines: Array
    comments: list[str]

    def __len__(self) -> int:
        return len(self.lines)

    def row(self, n: int) -> Row:
        """Line and cells of a row."""
        return int(self.lines[n]), self.cells[self.ends[n] : self.ends[n + 1]]


def read_delimited(body: bytes, origin: Origin, encoding: str | None = None) -> Table:
    """The table of a text, separated by comma, semicolon, tab or bar; see `decode` for its encoding.

    Lines end in LF, CRLF or CR; fields may be quoted; blank lines are skipped. The header is the row above the first
    row with a date. What stands above it, and notes below the last row, are kept as titles.

    Raises:
        DataError: binary data, two separators, no header or no rows, rows of different lengths.

    >>> read_delimited(b"Source: EIA\\ndate,WTI\\n2020-04-20,-37.63\\n", Origin("wti.csv")).titles
    ('Source: EIA',)
    """
    text, detected = decode(body, origin, encoding)
    stated = re.match(r"sep=.\r?\n", text)  # a first line that Excel writes
    text = text[stated.end() :] if stated else text
    rows = read_rows(text, find_separator(text, origin), origin, 2 if stated else 1)
    if not len(rows):
        raise DataError(f"{origin.label}: expected a header and rows; got only blank lines")
    head = [rows.row(n) for n in range(min(SAMPLE_ROWS, len(rows)))]
    first, top = _find_header(head, origin)
    line, names = head[first - 1]
    # below the table, rows have text in one cell, or nothing at all
    end, width = len(rows), int(rows.ends[first + 1] - rows.ends[first]) if first < len(rows) else 0
    while end > first:
        texts = [cell.strip() for cell in rows.row(end - 1)[1] if cell.strip()]
        is_text = len(texts) == 1 and width > 1 and re.search("[^\\W\\d]{3}", texts[0]) and not has_date(texts)
        if texts and not is_text:
            break
        end -= 1
    notes: list[tuple[int, str]] = [
        (line, " ".join(filter(None, cells)).strip()) for line, cells in map(rows.row, range(end, len(rows)))
    ]
    _check_notes(notes, names, origin)
    findings = [make_finding("ignored line", line=line, value=text or "an empty row") for line, text in notes]
    if encoding is None and not detected.startswith("utf"):
        findings.append(make_finding("encoding", value=f"not UTF-8; read as {detected}"))
    columns = _split_columns(rows, first, end, len(names), origin)
    titles = (*rows.comments, *(" ".join(filter(None, cells)) for _, cells in head[:top]), *(text for _, text in notes))
    levels = tuple(tuple(cell.strip() for cell in cells) for _, cells in head[top:first]) if first - top > 1 else ()
    named = [Column(column_name(name), cells) for name, cells in zip(names, columns)]
    # separators at the end of every line are no columns
    while not levels and len(named) > 1 and not named[-1].name and not any(map(str.strip, named[-1].cells)):
        named.pop()
    lines, where = rows.lines[first:end], origin.at(line)
    return Table(tuple(named), lines, origin, where, "CSV", levels, titles, findings=tuple(findings))


def read_rows(text: str, separator: str, origin: Origin, line: int = 1) -> Rows:
    """The rows of CSV text that begins on this line."""
    first, reader = line - 1, csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    cells: list[str] = []
    comments, ends, lines = [], [0], []
    try:
        for row in reader:
            if len(row) > 1 or (row and row[0].strip()):
                if row[0].startswith("#") and not has_date(row):  # `#ES` may be a symbol
                    comments.append(",".join(row))
                else:
                    cells += row
                    ends.append(len(cells))
                    lines.append(line)
            line = first + reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"{origin.at(line)}: expected well-formed CSV; got {error}") from None
    return Rows(cells, np.array(ends), np.array(lines, dtype=np.int64), comments)


def _check_notes(notes: list[tuple[int, str]], names: list[str], origin: Origin) -> None:
    """Reject notes below the table that are rows in another separator, or more than a few lines."""
    others = [
        (line, text)
        for line, text in notes
        for separator in SEPARATORS
        if len(cells := text.split(separator)) >= min(2, len(names)) and len(cells) > 1 and has_date(cells)
    ]
    if others or len(notes) > MAX_NOTES:
        line, text = (others or notes)[0]
        count = len(dict(others or notes))
        lines = f"{count:,} such lines" if count > 1 else "one such line"
        hint = "; write all rows with one separator, or remove what is no row"
        raise DataError(
            f"{origin.at(line)}: expected {len(names)} fields as in the header; got {text[:60]!r}, {lines}{hint}"
        )


def find_separator(text: str, origin: Origin) -> str:
    """The separator that splits most rows into the same number of fields.

    Raises:
        DataError: HTML or JSON, or two separators that split the rows equally well.
    """
    lines = [line for line in islice(io.StringIO(text), SAMPLE_ROWS) if line.strip()]
    if lines and re.match(r"\s*([{[]|<(?![A-Za-z]+>[,;\t]))", lines[0]):  # <TICKER>, is a column of Stooq's
        got = f"{lines[0].strip()[:60]!r} (HTML or JSON); convert it to CSV or Parquet"
        raise DataError(f"{origin.at(1)}: expected a CSV header; got {got}")
    scores = {separator: _regular_rows(lines, separator, strict=True) for separator in SEPARATORS}
    if not any(scores.values()):  # a quote that is never closed, perhaps: whoever reads the rows says in which line
        scores = {separator: _regular_rows(lines, separator, strict=False) for separator in SEPARATORS}
    best = max(scores.values())
    separators = [separator for separator, score in scores.items() if score == best > 0]
    if len(separators) > 1:
        got = " and ".join(map(repr, separators))
        raise DataError(f"{origin.at(1)}: expected one separator among , ; tab |; got {got} (quote the names)")
    return separators[0] if separators else ","


def _regular_rows(lines: list[str], separator: str, *, strict: bool) -> int:
    """How many rows have the most common number of fields above one; 0 if a quoted cell does not end there."""
    try:
        rows = list(csv.reader(lines, delimiter=separator, strict=strict))
    except csv.Error:
        rows = []
    widths = Counter(len(row) for row in rows if len(row) > 1)
    return max(widths.values(), default=0)


def has_date(cells: list[str]) -> bool:
    """Whether a cell of a row is a date, and none names a column of dates."""
    if any(DATE_NAME.fullmatch(cell.strip()) for cell in cells):
        return False
    return any(any(map(str.isdigit, cell)) and find_style(cell) is not None for cell in cells)


def is_sideways(cells: list[str]) -> bool:
    """Whether several cells of a header are dates, with a series in each row below.

    >>> is_sideways(["units", "source key", "Jan 1997", "Feb 1997"]), is_sideways(["2024-01-02", "70.38", "75.89"])
    (True, False)
    """
    filled = [cell for cell in cells if cell.strip()]
    dates = sum(any(map(str.isdigit, cell)) and find_style(cell) is not None for cell in filled)
    if dates == len(cells):
        return False
    return dates >= 3 or (dates == 2 and len(filled) <= 4)


def _find_header(head: list[Row], origin: Origin) -> tuple[int, int]:
    """The number of the first row below the header, and of the first row of the header, in the first rows of a text."""
    dated = [n for n, (_, cells) in enumerate(head) if has_date(cells)]
    if not dated:  # whoever gives the columns their roles says so
        first = next((n for n, (_, cells) in enumerate(head) if len(cells) > 1), 0) + 1
        return first, first - 1
    across = [n for n in dated if is_sideways(head[n][1])]
    above = [cell.strip() for _, cells in head[: across[0]] for cell in cells] if len(across) == 1 else []
    if len(across) == 1 and not any(map(DATE_NAME.fullmatch, above)):
        return across[0] + 1, across[0]
    width = Counter(len(head[n][1]) for n in dated).most_common(1)[0][0]
    first = next(n for n in dated if len(head[n][1]) == width)
    if first == 0:
        line, cells = head[0]
        got = f"a row of data: {','.join(cells)[:60]!r}"
        raise DataError(f"{origin.at(line)}: expected a header with names such as date,WTI above the data; got {got}")
    # the row below the lowest header that names its dates: rows in between are data, whose dates cannot be read
    named = [
        n
        for n, (_, cells) in enumerate(head[:first])
        if len(cells) == width
        and any(DATE_NAME.fullmatch(cell.strip()) for cell in cells)
        and all(find_style(cell) is None for cell in cells)  # a date in a title: `End Date,6/30/2023`
    ]
    line, cells = head[first - 1]
    if named:
        has_cells = any(cells[0].strip() for _, cells in head[named[-1] + 1 : first])  # a row of units has none
        first = named[-1] + 1 if has_cells else first
    elif any(re.fullmatch(r"[+-]?[0-9]*[.,][0-9]+", cell.strip()) for cell in cells):  # prices are no header
        got = f"{','.join(cells)[:60]!r}; check its date"
        raise DataError(f"{origin.at(line)}: expected a header above the first row with a date; got {got}")
    top, names = first - 1, head[first - 1][1]
    is_full, has_twins = all(cell.strip() for cell in names[:-1]), len(set(names)) < len(names)
    if not is_full or has_twins:  # a header of several rows: `Date,,` below `Ticker,CL=F,CL=F`, or a row of units
        while top > 0 and len(head[top - 1][1]) == width > 1:
            top -= 1
    return first, top


def _split_columns(rows: Rows, first: int, end: int, width: int, origin: Origin) -> list[list[str]]:
    """The cells of the columns; a row without `width` fields is a `DataError`, and so is a table without rows."""
    if first == end:
        raise DataError(f"{origin.label}: expected rows after the header; got none")
    cells = rows.cells[rows.ends[first] : rows.ends[end]]
    if (np.diff(rows.ends[first : end + 1]) != width).any():
        cells = []
        for line, row in map(rows.row, range(first, end)):
            while len(row) > width and not row[-1].strip():
                row.pop()
            if len(row) != width:
                hint = " (a decimal comma or an unquoted separator?)" if len(row) > width else ""
                got = f"{len(row)}{hint}: {','.join(row)[:60]!r}"
                raise DataError(f"{origin.at(line)}: expected {width} fields as in the header; got {got}")
            cells += row
    return [cells[n::width] for n in range(width)]
