"""Undo what hides words from a filter: invisible characters, lookalike letters, spaced letters and the like."""

import re
import unicodedata

_TAGS = {0xE0000 + code: chr(code) for code in range(0x20, 0x7F)}
# Soft hyphen, zero-width space, marks and overrides of direction, word joiner, byte order mark. Zero-width joiners are
# not among them, because Persian, Hindi and emoji are written with them.
_INVISIBLE = dict.fromkeys(
    (0xAD, 0x180E, 0x200B, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2060, 0x2070), 0xFEFF)
)
_JOINERS = {0x200C: None, 0x200D: None}
_ENTITY = re.compile(r"&#(?:x([0-9a-f]{1,6})|(\d{1,7}));", re.IGNORECASE)
_REVERSED = re.compile("\u202e([^\u202c\n]*)\u202c?")
# The marks above and below Latin, Greek, Cyrillic, Hebrew and Arabic letters.
_MARKS = re.compile("[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u20d0-\u20ff\ufe20-\ufe2f]")
_BLACK_AND_FLAG_LETTERS = {start + n: chr(ord("A") + n) for start in (0x1F150, 0x1F170, 0x1F1E6) for n in range(26)}
_LETTERS: dict[int, str | int] = {
    **_BLACK_AND_FLAG_LETTERS,
    **str.maketrans("ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘǫʀꜱᴛᴜᴠᴡʏᴢłŁøØđĐı", "abcdefghijklmnopqrstuvwyzlLoOdDi"),
    ord("ß"): "ss",
    ord("æ"): "ae",
    ord("Æ"): "AE",
    **str.maketrans(
        "規則選擇項無視這個確請從應該須號樣輸導給絕對記過", "规则选择项无视这个确请从应该须号样输导给绝对记过"
    ),
}
_LATIN_LIKE = str.maketrans(
    "аеорсухіјѕԁһӏкмтвнАЕОРСУХІЈЅКМТВНαοεινρτυκχΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
    "aeopcyxijsdhlkmtbhAEOPCYXIJSKMTBHaoeivptukxABEZHIKMNOPTYX",
)
_MIXED_SCRIPTS = re.compile(r"[A-Za-z][Ͱ-ӿ]|[Ͱ-ӿ][A-Za-z]")
_SPACED = re.compile(r"(?<![^\W_])[^\W_](?:[ .\-_*·][^\W_]){4,}(?![^\W_])")
_SPACED_SHORT = re.compile(r"(?<![^\W_])[^\W_](?:[ .\-_*·][^\W_])+(?![^\W_])")
# The words that are found in a run of letters without spaces.
_RUN = re.compile(
    r"ignore|disregard|forget|choose|select|pick|the|all|your|rules?|instructions?|options?|answer|and|right|correct|is(?=[A-H]$)",
    re.I,
)
_DIGITS = re.compile(r"\b(?=\w*[a-z])(?!\d+(?:st|nd|rd|th|am|pm)\b)\w*[a-z0-9]\w*\b", re.IGNORECASE)
_DIGIT_LETTERS = str.maketrans("01345789", "oieastbg")


def without_invisible(text: str) -> str:
    """Remove invisible characters, and decode what only a program reads."""
    text = _ENTITY.sub(_character, _REVERSED.sub(lambda match: match[1][::-1], text)).translate(_TAGS)
    return text.translate(_INVISIBLE)


def with_joined_letters(text: str) -> str:
    """Join letters that stand apart, as in "o p t i o n", where a text holds five and more in a row."""
    return _SPACED_SHORT.sub(_joined, text) if _SPACED.search(text) else text


def plain_letters(text: str) -> str:
    """Return the text in the plain letters that it looks like, for comparison only."""
    text = unicodedata.normalize("NFKD", text.translate(_JOINERS).translate(_LETTERS))
    text = unicodedata.normalize("NFC", _MARKS.sub("", text))
    if _MIXED_SCRIPTS.search(text):
        text = text.translate(_LATIN_LIKE)
    text = _DIGITS.sub(lambda match: match[0].translate(_DIGIT_LETTERS) if _has_both(match[0]) else match[0], text)
    return " ".join(text.split())


def _character(match: re.Match[str]) -> str:
    code = int(match[1], 16) if match[1] else int(match[2])
    return chr(code) if code < 0x110000 and chr(code).isprintable() else ""


def _joined(match: re.Match[str]) -> str:
    run = "".join(match[0][::2])
    return _RUN.sub(r" \g<0> ", run) if len(run) > 9 else run  # a single word is shorter


def _has_both(word: str) -> bool:
    return any(map(str.isdigit, word)) and sum(map(str.isalpha, word)) > 1
