"""Read letters in disguise: invisible, spelled out, in other scripts, or as digits and signs."""

import re
import unicodedata

# Tag characters, which repeat ASCII without being shown.
_TAGS = {0xE0000 + code: chr(code) for code in range(0x20, 0x7F)}
# Soft hyphen, Hangul fillers, zero-width space, marks and overrides of direction, word joiner, byte order mark.
# Zero-width joiners are not among them, because Persian, Hindi and emoji are written with them.
_INVISIBLE = dict.fromkeys((0xAD, 0x115F, 0x1160, 0x180E, 0x200B, 0x200E, 0x200F, 0x3164, 0xFEFF, 0xFFA0))
_INVISIBLE |= dict.fromkeys((*range(0x202A, 0x202F), *range(0x2060, 0x2070)))
# Zero-width joiner and non-joiner, which are removed only for comparison.
_JOINERS = {0x200C: None, 0x200D: None}
# A character written as its number, as in HTML.
_ENTITY = re.compile(r"&#(?:x([0-9a-f]{1,6})|(\d{1,7}));", re.IGNORECASE)
# Text between an override to right-to-left and its end.
_REVERSED = re.compile("\u202e([^\u202c\n]*)\u202c?")
# The marks above and below Latin, Greek, Cyrillic, Hebrew and Arabic letters.
_MARKS = re.compile("[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u20d0-\u20ff\ufe20-\ufe2f]")
# Letters in black circles, in black squares and of flags.
_SYMBOL_LETTERS = {start + n: chr(ord("A") + n) for start in (0x1F150, 0x1F170, 0x1F1E6) for n in range(26)}
# Letters that normalisation does not make plain, and traditional forms of Chinese characters.
_LETTERS: dict[int, str | int] = {
    **_SYMBOL_LETTERS,
    **str.maketrans("ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘǫʀꜱᴛᴜᴠᴡʏᴢłŁøØđĐı", "abcdefghijklmnopqrstuvwyzlLoOdDi"),
    ord("ß"): "ss",
    ord("æ"): "ae",
    ord("Æ"): "AE",
    **str.maketrans(
        "規則選擇項無視這個確請從應該須號樣輸導給絕對記過", "规则选择项无视这个确请从应该须号样输导给绝对记过"
    ),
}
# Cyrillic and Greek letters that look like Latin ones.
_LATIN_LIKE = str.maketrans(
    "аеорсухіјѕԁһӏкмтвнАЕОРСУХІЈЅКМТВНαοεινρτυκχΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
    "aeopcyxijsdhlkmtbhAEOPCYXIJSKMTBHaoeivptukxABEZHIKMNOPTYX",
)
# A Latin letter beside a Greek or Cyrillic one.
_MIXED_SCRIPTS = re.compile(r"[A-Za-z][Ͱ-ӿ]|[Ͱ-ӿ][A-Za-z]")
# Five letters and more that stand apart, as in "o p t i o n".
_SPACED = re.compile(r"(?<![^\W_])[^\W_](?:[ .\-_*·][^\W_]){4,}(?![^\W_])")
# Two letters and more that stand apart.
_SPACED_SHORT = re.compile(r"(?<![^\W_])[^\W_](?:[ .\-_*·][^\W_])+(?![^\W_])")
# Three letters and more with up to three signs between each.
_APART = re.compile(r"(?<![^\W_])[^\W_](?:[\W_]{1,3}[^\W_]){2,}(?![^\W_])")
# Signs in place of letters, as in "p@$t".
_SIGN_LETTERS = str.maketrans("@$", "as")
# The words that are searched in a run of letters without spaces.
_RUN_WORDS = re.compile(
    r"ignore|disregard|forget|choose|select|pick|the|all|your|rules?|instructions?|options?|answer|and|right|correct|is(?=[A-H]$)",
    re.I,
)
# A word with letters in which digits may stand for letters, but not "3rd" or "5pm".
_DIGITS = re.compile(r"\b(?=\w*[a-z])(?!\d+(?:st|nd|rd|th|am|pm)\b)\w*[a-z0-9]\w*\b", re.IGNORECASE)
# Digits in place of letters, as in "0pt10n".
_DIGIT_LETTERS = str.maketrans("01345789", "oieastbg")
# A shorter run is a single word.
_MIN_RUN_LENGTH = 10


def remove_invisible(text: str) -> str:
    """Remove invisible characters, and decode characters that only a program reads."""
    text = _ENTITY.sub(_decode_entity, _REVERSED.sub(lambda match: match[1][::-1], text)).translate(_TAGS)
    return text.translate(_INVISIBLE)


def join_letters(text: str) -> str:
    """Join letters that stand apart, as in "o p t i o n", where a text holds five and more in a row."""
    return _SPACED_SHORT.sub(_split_run, text) if _SPACED.search(text) else text


def to_plain_letters(text: str) -> str:
    """Return the text in the plain letters that it looks like, for comparison only."""
    if not text.isascii():
        text = unicodedata.normalize("NFKD", text.translate(_JOINERS).translate(_LETTERS))
        text = unicodedata.normalize("NFC", _MARKS.sub("", text))
    if _MIXED_SCRIPTS.search(text):
        text = text.translate(_LATIN_LIKE)
    if any(map(str.isdigit, text)):
        text = _DIGITS.sub(_replace_digits, text)
    return " ".join(text.split())


def read_disguised(text: str) -> tuple[str, str]:
    """Return the text in plain letters, with letters that stand apart joined; and the joined words alone."""
    plain = to_plain_letters(remove_invisible(text).translate(_SIGN_LETTERS))
    return _APART.sub(_join_match, plain), " ".join(map(_join_match, _APART.finditer(plain)))


def _join_match(match: re.Match[str]) -> str:
    """Join the letters and digits of a match."""
    return "".join(filter(str.isalnum, match[0]))


def _decode_entity(match: re.Match[str]) -> str:
    """Return the printable character that a number stands for, or nothing."""
    code = int(match[1], 16) if match[1] else int(match[2])
    return chr(code) if code < 0x110000 and chr(code).isprintable() else ""


def _split_run(match: re.Match[str]) -> str:
    """Join the letters of a match, and set spaces around the words in them."""
    run = "".join(match[0][::2])
    return _RUN_WORDS.sub(r" \g<0> ", run) if len(run) >= _MIN_RUN_LENGTH else run


def _replace_digits(match: re.Match[str]) -> str:
    """Replace the digits of a word by the letters that they look like, if it has two letters and more."""
    word = match[0]
    has_both = any(map(str.isdigit, word)) and sum(map(str.isalpha, word)) > 1
    return word.translate(_DIGIT_LETTERS) if has_both else word
