"""Questions on a norm in words and a clip, as in VideoNorms: adherence, evidence and the norm itself."""

from norm_core.engines.prompt import Part, Prompt, Question, Text
from norm_core.prompts.judge import FACES_ASIDE
from norm_core.prompts.transcript import pictures, transcript
from norm_core.records.window import Window

VERSION = "clip-norms-1"

_TASK = {
    "en": "Below are moments of a scene and what was said in it. Between fence lines stands a record of speech.",
    "zh": "下面是一个场景的画面和对话记录。围栏之间是对话记录。",
}
_KEPT = {
    "en": ("As to {}: does the conduct shown keep to the norm or break it?", ("it keeps to it", "it breaks it")),
    "zh": ("就{}而言：所示行为是遵守还是违反了规范？", ("遵守", "违反")),
}
_EVIDENCE = {
    "en": (
        'As to "{}": {}. Write JSON: {{"verbal": one sentence that quotes what is said and tells how it shows this, '
        '"nonverbal": one sentence on a look, gesture, posture, distance or tone that shows it}}.'
    ),
    "zh": (
        '就“{}”而言：{}。请写出JSON：{{"verbal": 一句话，引用所说的话并说明它如何体现这一点, '
        '"nonverbal": 一句话，说明体现这一点的眼神、手势、姿态、距离或语气}}。'
    ),
}
_SPECIFIC = {
    "en": 'Which norm of the category "{}" is this scene about? Write JSON: {{"norm": the norm in one sentence}}.',
    "zh": '这个场景涉及“{}”类别中的哪条规范？请写出JSON：{{"norm": 用一句话写出该规范}}。',
}


def prefix(window: Window, most_images: int, locale: str = "en", *, faces_aside: bool = False) -> Prompt:
    """Return the shared part of all questions about a clip; `faces_aside` forbids inferring emotions from images."""
    shown: tuple[Part, ...] = pictures(window.frames, most_images, window.start_ns)
    if faces_aside:
        shown = (Text(text=FACES_ASIDE[locale]), *shown)
    return Prompt(
        version=f"{VERSION}-{locale}{'-faces-aside' * faces_aside}",
        parts=(Text(text=_TASK[locale]), *shown, transcript(window.utterances, window.start_ns, locale)),
    )


def is_kept(norm: str, locale: str = "en") -> Question:
    """Ask for adherence or violation, in this order."""
    text, options = _KEPT[locale]
    return Question(parts=(Text(text=text.format(norm)),), options=options)


def evidence(prefix: Prompt, norm: str, kept: bool, locale: str = "en") -> Prompt:
    """Ask which speech and which actions show that a norm is kept or broken."""
    outcome = _KEPT[locale][1][0 if kept else 1]
    return Prompt(version=prefix.version, parts=(*prefix.parts, Text(text=_EVIDENCE[locale].format(norm, outcome))))


def specific_norm(prefix: Prompt, category: str, locale: str = "en") -> Prompt:
    """Ask for the clip's norm of a category, in words."""
    return Prompt(version=prefix.version, parts=(*prefix.parts, Text(text=_SPECIFIC[locale].format(category))))
