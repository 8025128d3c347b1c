"""What a person's words lead others to expect: more words, an act of their own, or an act of the robot."""

import re

from norm_monitor.context.set_phrases import is_remark
from norm_monitor.context.wording import is_chinese, question_in, sentences, tokens, word_count

# A question no longer than this before the person's own words only echoes the robot.
_ECHO_WORDS = 3

_OPEN_WORDS = frozenset({
    "a", "an", "the", "and", "but", "or", "so", "because", "my", "your", "our", "their", "of", "to", "um", "uh", "well",
})  # fmt: skip
_BARE_QUESTION = re.compile(r"(where|what|who|when|how|which|why)( is| are| was| were| do| does| did| can| could)?")
_PAUSE = re.compile(
    r"\b(a|one|two|five) (moment|minute|min|second|sec|bit|while|tick)s?\b|\b(hang|hold) on\b|\bbear with\b|\bwait\b"
    r"|\blet (me|us)\b|\blet's (see|look)\b|\bi('ll| will| am going to|'m going to|'m gonna)(?! (have|need)\b)"
)
_PAUSE_ZH = re.compile(r"等|让我|一会儿?|我先|我想想|看一下")
_REQUEST = re.compile(
    r"(?<!yes )(?<!yeah )\bplease\b(?! do)|\b(i|we)('d| would) (like|love|prefer)\b|\b(i|we) (need|want)\b"
    r"|\b(i|we)('ll| will) have\b|^(bring|give|show|tell|get|fetch|help|call|take|pass|send) (me|us)\b"
)
_REQUEST_ZH = re.compile(r"请|我想要|我要|给我|帮我|麻烦")
_REFUSAL = re.compile(r"\b(don't|do not|stop|leave (me|us|it)|be quiet|some ?(time|day)|one day|again)\b")
_REFUSAL_ZH = re.compile(r"^别|请别|不要|不用")


def is_unfinished(text: str) -> bool:
    """Whether the words leave a sentence open, as a comma, an article or a question word at the end do."""
    words = tokens(text)
    if not words or text.rstrip().endswith(("?", "？")):
        return False
    open_end = text.rstrip().endswith((",", "，", "...", "…", "-", "—"))
    return open_end or words[-1] in _OPEN_WORDS or _BARE_QUESTION.fullmatch(" ".join(words)) is not None


def announces_pause(text: str) -> bool:
    """Whether a person asks for time, or says that they do something themselves now."""
    return _found(_PAUSE, _PAUSE_ZH, text)


def is_request(text: str) -> bool:
    """Whether a person asks for something without a question, and for now; to leave something out is no request."""
    return _found(_REQUEST, _REQUEST_ZH, text) and not (announces_pause(text) or _found(_REFUSAL, _REFUSAL_ZH, text))


def has_open_question(text: str) -> bool:
    """Whether a question is open; a short question before the person's own words only echoes the robot."""
    question = question_in(text)
    is_open = bool(question) and (question == sentences(text)[-1] or word_count(question) > _ECHO_WORDS)
    return is_open and not is_remark(question)


def _found(english: re.Pattern[str], chinese: re.Pattern[str], text: str) -> bool:
    if is_chinese(text):
        return chinese.search(text) is not None
    return english.search(" ".join(tokens(text))) is not None
