"""Why windows close without some of their sources, and what to do about it."""

from collections.abc import Collection, Iterable

from norm_core.runtime.watermarks import FRAMES, PRESENCE, UTTERANCES

_NODES = {FRAMES: "camera", PRESENCE: "camera or people", UTTERANCES: "ears"}


def explain_missing(missing: Iterable[str], received: Collection[str], *, speech_under_way: bool) -> str:
    """Give a sentence for each missing source; received names those of which anything came so far."""
    return "; ".join(_explain(source, source in received, speech_under_way) for source in missing)


def _explain(source: str, received: bool, speech_under_way: bool) -> str:
    node = _NODES[source]
    if not received:
        return f"{source}: none has arrived, and windows close without them; start {node}, or read its status"
    if source != UTTERANCES:
        return f"{source}: the newest are late, and windows close without them; read the status of {node}"
    if speech_under_way:
        return (
            "utterances: somebody still talks, and windows close before the utterance ends; nothing is wrong, and "
            "windows.lateness_s sets how long windows wait"
        )
    return (
        "utterances: the newest are late, and windows close without them; either somebody still talks, or ears is slow "
        "or has stopped: read the status of ears"
    )
