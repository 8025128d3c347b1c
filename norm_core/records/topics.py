"""The names of Tactful's topics, each relative to the namespace of its nodes."""

NAMESPACE = "/tactful"

FRAMES_TOPIC, PRESENCE_TOPIC, UTTERANCES_TOPIC = "frames", "presence", "utterances"
ROBOT_SPEECH_TOPIC = "robot_speech"
# A shadow monitor publishes these three below `shadow/`.
FLAGS_TOPIC, FLAGS_JSON_TOPIC, ATTENTION_TOPIC = "flags", "flags_json", "attention"
SHADOW = "shadow/"
WINDOWS_TOPIC = "windows"
DECISIONS_TOPIC, DECISIONS_JSON_TOPIC = "decisions", "decisions_json"
STATUS_TOPIC, DIAGNOSTICS_TOPIC = "status", "/diagnostics"
# Published at the end of a recording, so that the senses finish open speech. Live, they rely on a timeout.
RECORDING_ENDED_TOPIC = "recording_ended"
# Published after the last output of the senses, so that monitor and selector finish.
SENSES_ENDED_TOPIC = "input_ended"
# Only in replays.
QUERIES_TOPIC, ANSWERS_TOPIC, EPISODES_TOPIC = "queries", "answers", "episodes"
DRAIN_REQUEST_TOPIC, DRAIN_REPORT_TOPIC = "drain_request", "drain_report"


def full_topic(name: str) -> str:
    """Return the full name of a topic of the nodes in the namespace that they have by default."""
    return f"{NAMESPACE}/{name}"
