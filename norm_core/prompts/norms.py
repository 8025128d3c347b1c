"""Norms of speech acts in the terms of VideoNorms: the act, and whether the robot keeps its norm."""

from enum import StrEnum

from norm_core.engines.prompt import Question, Text


class SpeechAct(StrEnum):
    """The speech acts of VideoNorms."""

    THANKS = "thanks"
    APOLOGY = "apology"
    ADMIRATION = "admiration"
    GREETING = "greeting"
    FAREWELL = "farewell"
    REQUESTING_INFORMATION = "requesting information"
    REJECTING_A_REQUEST = "rejecting a request"
    GRANTING_A_REQUEST = "granting a request"
    AGREEMENT = "agreement"
    DISAGREEMENT = "disagreement"


_ZH = {
    SpeechAct.THANKS: "感谢",
    SpeechAct.APOLOGY: "道歉",
    SpeechAct.ADMIRATION: "赞赏",
    SpeechAct.GREETING: "问候",
    SpeechAct.FAREWELL: "告别",
    SpeechAct.REQUESTING_INFORMATION: "询问信息",
    SpeechAct.REJECTING_A_REQUEST: "拒绝请求",
    SpeechAct.GRANTING_A_REQUEST: "答应请求",
    SpeechAct.AGREEMENT: "同意",
    SpeechAct.DISAGREEMENT: "不同意",
}
_SHOWN = {
    "en": "Which speech act, of anyone, shows most clearly in these moments?",
    "zh": "在这些时刻里，最明显的是谁的哪种言语行为？",
}
_NONE = {"en": "none of these", "zh": "以上都不是"}
_KEPT = {
    "en": (
        "As to that speech act, or the answer that is due to it: does the robot keep to the social norm or break it?",
        ("it keeps to the norm", "it breaks the norm", "no norm is at stake"),
    ),
    "zh": (
        "就该言语行为或对它应有的回应而言，机器人是遵守还是违反了社会规范？",
        ("遵守规范", "违反规范", "不涉及规范"),
    ),
}


class NormAdherence(StrEnum):
    """The options of the second question, in order; its last option is "none of these"."""

    ADHERENCE = "adherence"
    VIOLATION = "violation"


def questions(locale: str = "en") -> list[Question]:
    """Ask for the speech act, in the order of SpeechAct, or none; then whether the robot keeps its norm."""
    names = tuple(act.value if locale == "en" else _ZH[act] for act in SpeechAct)
    text, options = _KEPT[locale]
    return [
        Question(parts=(Text(text=_SHOWN[locale]),), options=(*names, _NONE[locale])),
        Question(parts=(Text(text=text),), options=options),
    ]
