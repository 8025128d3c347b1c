"""Norms of speech acts in VideoNorms' terms: whether what is shown keeps to them, and what shows it."""

from enum import StrEnum

from norm_core.engines.prompt import Part, Prompt, Question, Text
from norm_core.prompts.transcript import pictures, transcript
from norm_core.window import Window

VERSION = "norms-1"


class SpeechAct(StrEnum):
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
_TASK = {
    "en": "Below are moments of a scene and what was said in it. Between fence lines stands a record of speech.",
    "zh": "下面是一个场景的画面和对话记录。围栏之间是对话记录。",
}
_SHOWN = {"en": "Which speech act does the scene show most clearly?", "zh": "这个场景最明显地表现了哪种言语行为？"}
_NONE = {"en": "none of these", "zh": "以上都不是"}
_KEPT = {
    "en": ("As to {}: does the conduct shown keep to the norm or break it?", ("it keeps to it", "it breaks it")),
    "zh": ("就{}而言：所示行为是遵守还是违反了规范？", ("遵守", "违反")),
}


def prefix(window: Window, most_images: int, locale: str = "en") -> Prompt:
    """What all questions about a scene share."""
    shown: tuple[Part, ...] = pictures(window.frames, most_images, window.start_ns)
    return Prompt(
        version=f"{VERSION}-{locale}",
        parts=(Text(text=_TASK[locale]), *shown, transcript(window.utterances, window.start_ns, locale)),
    )


def which_act(locale: str = "en") -> Question:
    """Which speech act is shown, in the order of SpeechAct, or none of them."""
    names = tuple(act.value if locale == "en" else _ZH[act] for act in SpeechAct)
    return Question(parts=(Text(text=_SHOWN[locale]),), options=(*names, _NONE[locale]))


def is_kept(act: SpeechAct, norm: str = "", locale: str = "en") -> Question:
    """Adherence, then violation, of an act's norm, or of the one given in words."""
    text, options = _KEPT[locale]
    name = norm or (act.value if locale == "en" else _ZH[act])
    return Question(parts=(Text(text=text.format(name)),), options=options)
