"""Phrases whose form misleads: remarks like questions, warnings like interruptions, requests to repeat."""

import re

from norm_monitor.context.wording import is_chinese, tokens, word_count

_FINE = (
    r"(lovely|nice|beautiful|pretty|great|wonderful|cute|adorable|amazing|sweet|gorgeous|funny|strange|odd|awful"
    r"|terrible|delicious|shame|pity|mess|day|weather)"
)
_TAG = r"(isn't|aren't|wasn't|weren't|doesn't|don't) (it|that|this|he|she|they|you think)"
# A remark asks for assent at most; the person may say it to nobody.
_REMARK = re.compile(
    rf"^(oh |well |so |and |wow )*({_TAG} (just |so |really |a )*{_FINE}|(.* )?{_FINE}( .*)? {_TAG})$"
    r"|^(oh |well |but )*(who (knows|cares)|who would have thought( it| that)?|how about that|what do you know)$"
    r"|^(can|would) you believe (it|that)$"
    r"|^(now |so |oh |but )*(where did i (put|leave)|where have i (put|left)|why (do|am) i always"
    r"|what (was|am) i (saying|doing)|what did i come)\b"
)
# The longest turn that only warns, or only asks for a repetition, in words.
_LONGEST = 8
_WARNING = re.compile(
    r"^(oh |hey )?(((watch|look) out|careful|be careful|beware|heads up|duck|mind (your|the))\b(?! what)"
    r"|(stop|wait|halt|don't move|get back|stand back)\b.*!$)"
)
_WARNING_ZH = re.compile(r"^(小心|当心|注意(脚下|台阶|安全)|危险|别动)")
_REPEAT = re.compile(
    r"\b(again|once more|one more time|repeat)\b|\b(did|do) you say\b"
    r"|^(sorry |oh |and )*(what|how much|how many|how long|when|where|which|who)\b.* (was|were) (it|that|he|she|they)$"
)
_REPEAT_ZH = re.compile(r"再说一|重复一|说什么|刚才.*(多少|几|什么|哪)")


def is_remark(question: str) -> bool:
    """Whether a question is a remark that wants no answer, such as "isn't it lovely?"."""
    return _REMARK.match(_plain(question)) is not None


def is_warning(text: str) -> bool:
    """Whether a turn is nothing but a warning of danger, which may cut in."""
    if word_count(text) > _LONGEST:
        return False
    if is_chinese(text):
        return _WARNING_ZH.match(text.strip()) is not None
    return _WARNING.match(_plain(text) + ("!" if text.rstrip().endswith("!") else "")) is not None


def asks_to_repeat(text: str) -> bool:
    """Whether a short turn asks to hear something once more, such as "how much was it?"."""
    asked = _REPEAT_ZH.search(text) if is_chinese(text) else _REPEAT.search(_plain(text))
    return asked is not None and word_count(text) <= _LONGEST


def _plain(text: str) -> str:
    return " ".join(tokens(text))
