"""The encoding of a text that is not UTF-8: the one in which its words are those of prices, or of one script."""

import codecs
import re
from collections.abc import Callable
from typing import NamedTuple

from torchcommodity.data._core.errors import DataError
from torchcommodity.data._sources.formats import is_known, key
from torchcommodity.data._sources.tables.table import Origin

BYTE_ORDER_MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"\xef\xbb\xbf": "utf-8-sig"}
SAMPLE = 2**16  # first bytes from which the encoding is told
LONG_WORD = 3  # letters outside ASCII that no word of a Latin alphabet has in a row, as a rule
WORDS = re.compile(r"[^\s,;|\t\"0-9]*[^\x00-\x7f][^\s,;|\t\"]*")


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
        codec = codecs.lookup(stated)
    except LookupError:
        known = ", ".join(encoding.name for encoding in ENCODINGS)
        raise DataError(
            f"encoding: expected an encoding that Python knows, such as utf-8, {known}; got {stated!r}"
        ) from None
    try:
        return body.decode(codec.name).removeprefix("\ufeff"), stated
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        got = f"byte 0x{body[error.start]:02x}"
        raise DataError(f"{origin.at(line)}: expected text in {stated}, as encoding= says; got {got}") from None


def _readings(body: bytes) -> dict[str, str]:
    """The sample in the encodings that may be the right one."""
    sample = body if len(body) <= SAMPLE else body[: body.rfind(b"\n", 0, SAMPLE) + 1]
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
