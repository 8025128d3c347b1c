"""The judge's first question about each unit of a bag, with a coder's label where there is one."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from calibration.unit_examples import labels_of
from norm_core.engines.prompt import Prompt, Question
from norm_core.prompts.judge import MARK
from norm_core.records.flag import Polarity
from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError
from norm_monitor.judge.deployment_context import DeploymentContext
from norm_monitor.judge.excerpt import Excerpt
from norm_monitor.judge.prompt_plan import plan
from norm_monitor.units.unit_view import UnitView
from sim_replays.scenarios.truth import read_truth, truth_path
from study_desk.log.recording import open_recording
from study_desk.log.schema import CONSENSUS, MONITOR


@record
class MarkedOnset:
    """The beginning of what a coder marked."""

    onset_ns: int
    polarity: Polarity


@record
class BagQuestion:
    """The first question about a unit, the words that are judged, and the label; None for an ordinary unit."""

    bag: str
    unit_id: str
    words: str
    prompt: Prompt
    question: Question
    polarity: Polarity | None


def questions_of(bag: str, views: Sequence[UnitView], images: int, events: Iterable[MarkedOnset]) -> list[BagQuestion]:
    """Return a question for each unit that the monitor would hand to a judge."""
    labels = labels_of(views, events)
    found = []
    for place, view in enumerate(views):
        excerpt = Excerpt.of_unit(view)
        questions = plan(excerpt, images, DeploymentContext.UNSPECIFIED)
        lines = excerpt.talk(questions.locale).text.splitlines()
        found.append(
            BagQuestion(
                bag=bag,
                unit_id=view.unit.unit_id,
                words=" ".join(line.removeprefix(f"{MARK} ") for line in lines if line.startswith(MARK)),
                prompt=questions.prompt,
                question=questions.detection,
                polarity=labels[place].polarity if place in labels else None,
            )
        )
    return found


def coded_events(labels: Path, bag: Path) -> list[MarkedOnset]:
    """Read what was marked of a bag: in BAG.truth.json in that folder, or in a log of the study desk.

    Of a log with a consensus, the consensus counts; otherwise the labels of all coders.
    """
    beside = labels / bag.name
    if labels.is_dir() and truth_path(beside).is_file():
        events = read_truth(beside).events
        return [MarkedOnset(onset_ns=event.onset_ns, polarity=event.polarity) for event in events]
    if labels.is_dir():
        raise TactfulError(f"--labels: {labels} has no {truth_path(beside).name}; put the labels of {bag} there")
    marked = [label for label in open_recording(labels).labels if label.coder != MONITOR]
    agreed = [label for label in marked if label.coder == CONSENSUS]
    return [MarkedOnset(onset_ns=label.start_ns, polarity=label.polarity) for label in agreed or marked]
