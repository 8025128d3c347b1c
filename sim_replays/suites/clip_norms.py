"""Questions about a norm in a clip, as in VideoNorms: adherence, evidence and the norm itself."""

from norm_core.engines.prompt import Part, Prompt, Question, Text
from norm_core.engines.prompt_file import load_prompt_file
from norm_core.records.window import Window
from norm_monitor.judge.questions import forbid_face_reading
from norm_monitor.judge.transcript import choose_pictures, format_transcript

_FILE = load_prompt_file("clip_norms", "sim_replays.suites")
VERSION = _FILE.version
_TEXTS = _FILE.texts


def make_prefix(window: Window, max_images: int, locale: str = "en", *, faces_aside: bool = False) -> Prompt:
    """Return the part that all questions about a clip share; `faces_aside` forbids inferring emotions from images."""
    parts: tuple[Part, ...] = choose_pictures(window.frames, max_images, window.start_ns)
    if faces_aside:
        parts = (forbid_face_reading(locale), *parts)
    return Prompt(
        version=f"{VERSION}-{locale}{'-faces-aside' * faces_aside}",
        parts=(
            Text(text=_TEXTS[locale]["task"]),
            *parts,
            format_transcript(window.utterances, window.start_ns, locale),
        ),
    )


def ask_whether_kept(norm: str, locale: str = "en") -> Question:
    """Ask for adherence or violation, in this order."""
    texts = _TEXTS[locale]
    return Question(parts=(Text(text=texts["kept"].format(norm)),), options=tuple(texts["outcomes"]))


def ask_evidence(prefix: Prompt, norm: str, is_kept: bool, locale: str = "en") -> Prompt:
    """Ask which speech and which actions show that a norm is kept or broken."""
    texts = _TEXTS[locale]
    text = texts["evidence"].format(norm, texts["outcomes"][0 if is_kept else 1])
    return Prompt(version=prefix.version, parts=(*prefix.parts, Text(text=text)))


def ask_norm(prefix: Prompt, category: str, locale: str = "en") -> Prompt:
    """Ask for the norm of a category in the clip, in words."""
    return Prompt(version=prefix.version, parts=(*prefix.parts, Text(text=_TEXTS[locale]["specific"].format(category))))
