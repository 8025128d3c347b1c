"""Take a coding back, such as one that was imported under the wrong coder. The log keeps it."""

from pathlib import Path

from norm_core.records.record import record
from norm_core.runtime.time import Clock
from study_desk.log.recording import open_recording
from study_desk.log.schema import CONSENSUS, Coding, Label, LabelRemoval
from study_desk.log.writer import StudyLog
from study_desk.study.study_folder import StudyError


@record
class Retraction:
    """What was taken back from a session. `consensus` counts its agreed events that hold an opinion of the coder."""

    session: str
    coder: str
    labels: int
    consensus: int
    head: str


def retract_coding(log: Path, coder: str, clock: Clock) -> Retraction:
    """Note in a log that a coder has not coded its session. Raises StudyError where they have not."""
    recording = open_recording(log)
    if coder not in recording.coders:
        raise StudyError(
            f"{log}: has no coding by {coder}; it has those of {', '.join(sorted(recording.coders)) or 'nobody'}: "
            "name one of these"
        )
    with StudyLog.resume(log, clock) as writer:
        writer.append(Coding(coder=coder, labels=0, replaces=True, retracts=True), recording.end_ns)
    standing: list[Label | LabelRemoval] = [*recording.labels, *recording.removals]
    settled = [each for each in standing if each.coder == CONSENSUS]
    return Retraction(
        session=recording.info.session,
        coder=coder,
        labels=sum(label.coder == coder for label in recording.labels),
        consensus=sum(any(opinion.coder == coder for opinion in each.opinions) for each in settled),
        head=writer.head,
    )
