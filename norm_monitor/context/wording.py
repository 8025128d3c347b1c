"""The form of a turn's words, in English and Chinese, without regard to their meaning."""

import re
import unicodedata
from functools import lru_cache

_CJK = r"㐀-䶿一-鿿豈-﫿"
_CHINESE = re.compile(f"[{_CJK}]")
_TOKEN = re.compile(rf"[{_CJK}]|[^\W_]+(?:['’][^\W_]+)*")
_SENTENCE = re.compile(r"[^.?!…。？！\n]*[.?!…。？！\n]+|[^.?!…。？！\n]+$")
_BACKCHANNELS = {
    *("mm", "mmm", "mhm", "mm hm", "mm hmm", "uh huh", "uhuh", "hm", "hmm", "yeah", "yes", "yep", "yup", "ok", "okay"),
    *("right", "sure", "oh", "ah", "aha", "i see", "oh i see", "got it", "oh okay", "oh ok", "wow", "really", "great"),
    *("oh wow", "yeah yeah", "okay okay", "all right", "alright", "good", "nice", "cool", "true", "exactly"),
    *("嗯", "嗯嗯", "对", "对对", "好", "好的", "是", "是的", "哦", "啊", "行"),
}
_FILLERS = {"um", "uh", "er", "erm", "hm", "hmm", "mm", "well", "so", "嗯", "呃", "那个"}
_FILLER_PHRASES = re.compile(
    r"^(let me (see|think|check|have a look)|one (moment|second|sec)|(just )?a (moment|second|sec)|hold on|give me a"
    r"|just a|let's see|请稍等|稍等|让我(想|看))"
)
_QUESTION_OPENERS = (
    r"(and |so |but |okay |well |sorry |excuse me )*(what|who|whom|whose|where|when|why|how|which|is|are|am|was|were"
    r"|do|does|did|can|could|will|would|shall|should|may|might|have|has|had|isn't|aren't|don't|doesn't|didn't|can't"
    r"|couldn't|won't|wouldn't|any)\b"
)
_QUESTION_ZH = re.compile(r"[吗呢]|什么|怎么|哪|谁|几点|多少|为什么|是不是|能不能|可不可以|有没有")


def tokens(text: str) -> list[str]:
    """Return lower-case words; each Chinese character is one."""
    return list(_tokens(text))


# Cached, because each window reads the turns of the last minutes again.
@lru_cache(maxsize=8192)
def _tokens(text: str) -> tuple[str, ...]:
    return tuple(
        found.group().lower().replace("’", "'") for found in _TOKEN.finditer(unicodedata.normalize("NFKC", text))
    )


@lru_cache(maxsize=8192)
def word_count(text: str) -> int:
    """Count the words; two Chinese characters count as one."""
    found = tokens(text)
    characters = sum(1 for token in found if is_chinese(token))
    return len(found) - characters + (characters + 1) // 2


def forget_words() -> None:
    """Clear the cache of texts."""
    for looked_at in (_tokens, word_count, _sentences, _clauses):
        looked_at.cache_clear()


def sentences(text: str) -> list[str]:
    """Return the sentences of a text that contain a word."""
    return list(_sentences(text))


@lru_cache(maxsize=8192)
def _sentences(text: str) -> tuple[str, ...]:
    return tuple(part for found in _SENTENCE.finditer(text) if tokens(part := found.group().strip()))


def clauses(sentence: str) -> list[str]:
    """Return the clauses between commas or around "and", if there are several."""
    return list(_clauses(sentence))


@lru_cache(maxsize=8192)
def _clauses(sentence: str) -> tuple[str, ...]:
    parts = tuple(part.strip() for part in re.split(r"[,，;；:：]|\band\b", sentence) if tokens(part))
    return parts if len(parts) > 1 else ()


def is_chinese(text: str) -> bool:
    """Whether the text contains Chinese characters."""
    return _CHINESE.search(text) is not None


def locale_of(text: str) -> str:
    """Return the language of thresholds and examples for this text: en or zh."""
    return "zh" if is_chinese(text) else "en"


def is_backchannel(text: str) -> bool:
    """Whether the text is a backchannel such as "mm-hm" or "okay", which claims no turn."""
    plain = "".join(tokens(text)) if is_chinese(text) else " ".join(tokens(text))
    return plain in _BACKCHANNELS or not plain


def is_filler(text: str) -> bool:
    """Whether the text is a filler such as "let me see" or "um", which announces an answer."""
    found = tokens(text)
    phrase = "".join(found) if is_chinese(text) else " ".join(found)
    return bool(found) and (
        all(token in _FILLERS for token in found)
        or (word_count(text) <= 7 and _FILLER_PHRASES.search(phrase) is not None)
    )


def is_question(text: str) -> bool:
    """Whether the text has the form of a question, with any punctuation."""
    return any(_asks(sentence) for sentence in sentences(text))


def question_in(text: str) -> str:
    """Return the last question in the text, or an empty string."""
    return next((sentence for sentence in reversed(sentences(text)) if _asks(sentence)), "")


def _asks(sentence: str) -> bool:
    if sentence.rstrip("\"'”’ ").endswith(("?", "？")):
        return True
    if is_chinese(sentence):
        return _QUESTION_ZH.search(sentence) is not None
    return re.match(_QUESTION_OPENERS, " ".join(tokens(sentence))) is not None and sentence.rstrip()[-1:] not in "!"
