"""Why windows close without some of their sources, and what to do about it."""

from collections.abc import Collection, Iterable

from norm_core.records.record import record
from norm_core.streams.watermarks import FRAMES, PRESENCE, UTTERANCES

_NODES = {FRAMES: ("camera",), PRESENCE: ("camera", "people"), UTTERANCES: ("ears",)}


@record
class MissingReport:
    """What is missing: problems, and what is no problem but shows in the flags."""

    problem: str = ""
    note: str = ""


def report_missing(
    missing: Iterable[str],
    received: Collection[str],
    *,
    speech_under_way: bool,
    active_nodes: Collection[str] | None = None,
    silent: Collection[str] = (),
) -> MissingReport:
    """Report on each missing source.

    `received` are the sources of which anything came so far, `silent` those of which nothing came lately.
    `active_nodes` are the nodes that are known to run; None if nothing is known of nodes, as in a replay.
    """
    problems, note = [], ""
    for source in dict.fromkeys((*missing, *silent)):
        nodes = _NODES[source]
        is_absent = active_nodes is not None and not set(nodes) & set(active_nodes)
        if source == UTTERANCES and speech_under_way and not is_absent and source not in silent:
            note = (
                "utterances: somebody talked on when the newest window closed, so it lacks the utterance; "
                "windows.lateness_s sets how long windows wait"
            )
        else:
            problems.append(f"{source}: {_problem(source, source in received, is_absent, active_nodes is not None)}")
    return MissingReport(problem="; ".join(problems), note=note)


def _problem(source: str, is_received: bool, is_absent: bool, is_known: bool) -> str:
    nodes = _NODES[source]
    node = " or ".join(nodes)
    without = "and windows close without them"
    if is_absent:
        absent, article = ("neither camera nor people is", "one") if source == PRESENCE else (f"{node} is not", "it")
        return f"{absent} active, {without}; start {article}, or whatever publishes {source}"
    if not is_received:
        remedy = f"{node} is active: read its status" if is_known else f"start {node}, or read its status"
        return f"none has arrived, {without}; {remedy}"
    if source != UTTERANCES:
        return f"the newest are late, {without}; read the status of {node}"
    rest = "is slow or hears nothing" if is_known else "is slow or has stopped"
    remedy = f"read the status of {node}, or raise windows.lateness_s"
    return f"the newest are late, {without}, because {node} {rest}; {remedy}"
