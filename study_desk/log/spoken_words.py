"""Who said what in a session: the robot's words as it told them, not as the microphone heard them."""

from collections.abc import Iterable

from norm_core.records.speech import RobotSpeech, Speaker, Utterance
from norm_monitor.senses.robot_voice.robot_voice import LEAD_NS, RobotTurn, RobotVoice, RobotVoiceConfig


def spoken_utterances(
    utterances: Iterable[Utterance], robot_speech: Iterable[RobotSpeech], end_ns: int
) -> tuple[Utterance, ...]:
    """Put the robot's own account in place of its echo. Where it told no words, what was heard remains."""
    edges = tuple(robot_speech)
    voice = RobotVoice(RobotVoiceConfig(), kept=len(edges))
    for edge in edges:
        voice.feed(edge, None)
    turns = [turn for turn in voice.about(0, end_ns).turns if turn.text]
    locales = {edge.speech_id: edge.locale for edge in edges if edge.locale}
    heard = (said for said in utterances if said.speaker is not Speaker.ROBOT or not _is_told(said, turns))
    told = (_utterance(turn, locales.get(turn.speech_id, "")) for turn in turns)
    return tuple(sorted((*heard, *told), key=lambda said: (said.start_ns, said.utterance_id)))


def _is_told(said: Utterance, turns: Iterable[RobotTurn]) -> bool:
    return any(said.start_ns < turn.rings_until_ns and said.end_ns > turn.start_ns - LEAD_NS for turn in turns)


def _utterance(turn: RobotTurn, locale: str) -> Utterance:
    return Utterance(
        stamp_ns=turn.start_ns,
        utterance_id=turn.speech_id or f"robot@{turn.start_ns}",
        speaker=Speaker.ROBOT,
        text=turn.text,
        locale=locale,
        start_ns=turn.start_ns,
        end_ns=turn.end_ns,
    )
