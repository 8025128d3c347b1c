"""The names of Tactful's topics, each relative to the namespace of its nodes."""

NAMESPACE = "/tactful"

FRAMES_TOPIC = "frames"
PRESENCE_TOPIC = "presence"
UTTERANCES_TOPIC = "utterances"
ROBOT_SPEECH_TOPIC = "robot_speech"
FLAGS_TOPIC = "flags"
FLAGS_JSON_TOPIC = "flags_json"
OPEN_FLAGS_TOPIC = "open_flags"
ATTENTION_TOPIC = "attention"
# A shadow monitor publishes flags and attention below this name.
SHADOW = "shadow/"
WINDOWS_TOPIC = "windows"
DECISIONS_TOPIC = "decisions"
DECISIONS_JSON_TOPIC = "decisions_json"
STATUS_TOPIC = "status"
DIAGNOSTICS_TOPIC = "/diagnostics"
# Published at the end of a recording, so that the senses finish open speech. Live, they rely on a timeout.
RECORDING_ENDED_TOPIC = "recording_ended"
# Published after the last output of the senses, so that monitor and selector finish.
SENSES_ENDED_TOPIC = "input_ended"
# The topics of replays alone.
QUERIES_TOPIC = "queries"
ANSWERS_TOPIC = "answers"
EPISODES_TOPIC = "episodes"
DRAIN_REQUEST_TOPIC = "drain_request"
DRAIN_REPORT_TOPIC = "drain_report"


def full_topic(name: str) -> str:
    """Return the full name of a topic of the nodes in the namespace that they have by default."""
    return f"{NAMESPACE}/{name}"
