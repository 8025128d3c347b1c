"""The report of a session as one offline HTML file."""

from datetime import UTC, datetime
from typing import Any

from norm_core.files.data_files import shipped_file
from norm_core.records.flag import Attribute
from norm_core.records.json_codec import to_plain
from norm_core.runtime.time import NS_PER_S
from norm_monitor.assessment.finding import MAX_MEASURES
from norm_monitor.session_log.recording import Recording
from norm_monitor.view.page_items import (
    VoiceNumbers,
    make_decision_item,
    make_flag_item,
    make_speech_item,
    merge_presences,
    ms_since,
)
from norm_monitor.view.page_server import fill_page

_PAGE = shipped_file("study_desk.analysis", "page")
_SCRIPTS = ("dom", "model", "timeline", "list", "weights", "details", "filters", "display", "main")


def render_session(recording: Recording) -> str:
    """Render the page."""
    title = f"Session {recording.info.session}"
    return fill_page("page", ("page",), _SCRIPTS, title, collect_page_data(recording), _PAGE)


def collect_page_data(recording: Recording) -> dict[str, Any]:
    """Collect the page's data, with times in milliseconds from the session's start."""
    info = recording.info
    start_ns = recording.start_ns
    flags = [make_flag_item(flag, start_ns, recording.views.get(flag.event_id, ())) for flag in recording.flags]
    voices = VoiceNumbers()
    used = {attribute for flag in flags for attribute in flag["attributes"]}
    return {
        "info": {
            "study": info.study,
            "session": info.session,
            "condition": info.condition,
            "participants": [participant.pseudonym for participant in info.participants],
            "robot": info.robot,
            "date": datetime.fromtimestamp(start_ns / NS_PER_S, UTC).strftime("%Y-%m-%d") if start_ns > 0 else "",
            "software_version": info.software_version,
        },
        "source": recording.source.name,
        "head": recording.head,
        "notes": list(recording.notes),
        "end": ms_since(start_ns, recording.end_ns),
        "at_most": MAX_MEASURES,
        "attributes": [a.value for a in Attribute if a in used] or [a.value for a in Attribute],
        "all_attributes": [a.value for a in Attribute],
        "flags": flags,
        "decisions": [make_decision_item(decision, start_ns) for decision in recording.decisions],
        "speech": [make_speech_item(utterance, start_ns, voices) for utterance in recording.speech],
        "presence": merge_presences(recording.presences, start_ns),
        "reviews": [to_plain(review) for review in recording.reviews],
    }
