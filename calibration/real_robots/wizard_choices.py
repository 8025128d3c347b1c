"""Whether the selector chooses as SCOUT's wizard did: python -m calibration.real_robots.wizard_choices --scout FILE.

The wizard answered each request in one of four ways, which are the candidates. The same number of each way is drawn.
"""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table

from action_selector.decider import Decider
from action_selector.request import Request
from action_selector.selector_config import SelectorConfig, WhenUnsure
from calibration.command import run_command
from calibration.real_robots.scout import Json, person_of, read_rows, read_sessions
from norm_core.engines.request_context import Deadline
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.engines.talk_reader import NO_READER, open_reader
from norm_core.records.record import record
from norm_core.records.speech import Speaker, Utterance
from norm_core.records.window import Window
from norm_core.runtime.time import NS_PER_S, ReplayClock
from scoring.intervals import draw_clusters, percentile_interval

_SCENE = "A person in another room tells a robot what to do. The robot drives through a building and sends pictures."
# The candidates, and the relations of the wizard's reply to the request.
_CHOICES = {
    "Say that it will be done, and do it.": ("processing", "ack-wilco", "ack-doing", "ack-try"),
    "Ask which object, place, direction or distance is meant.": ("req-clar", "missing-info"),
    "Say that this was not understood, and ask to repeat it.": ("nack", "req-repeat"),
    "Say that this cannot be done.": ("ack-cant",),
}
_NAMES = ("execute", "clarify", "ask to repeat", "refuse")
_CANDIDATES = tuple(_CHOICES)
_SPOKEN = 3  # the person's last rows that the selector hears
_CONFIG = SelectorConfig(when_unsure=WhenUnsure.BEST_EFFORT)
_SEED, _DRAWS = 20261129, 1000


@record
class Choice:
    """What a person said, and the index of the wizard's choice."""

    person: str
    spoken: tuple[str, ...]
    chosen: int


def measure_choices(
    scout: Annotated[Path, typer.Option(exists=True, dir_okay=False, help="SCOUT's sessions, one JSON a line.")],
    reader: Annotated[str, typer.Option(help="Folder of the talk reader; none: without one.")] = NO_READER,
    each: Annotated[int, typer.Option(min=1, help="Choices of each kind that are drawn.")] = 50,
) -> None:
    """Print how often the selector chooses as the wizard did, on as many choices of each kind, and on all."""
    every = [choice for session in read_sessions(scout) for choice in find_choices(session)]
    shares = np.bincount([choice.chosen for choice in every], minlength=len(_NAMES)) / len(every)
    order = np.random.default_rng(_SEED).permutation(len(every))
    drawn: list[Choice] = []
    for kind in range(len(_NAMES)):
        drawn += [every[index] for index in order if every[index].chosen == kind][:each]
    encoder = SentenceEncoder()
    answers = {
        "always execute": [0] * len(drawn),
        "selector, by likeness": _ask_selector(drawn, Decider(encoder, _CONFIG)),
        "nearest mean of other people's requests": _choose_nearest(drawn, encoder),
    }
    if reader != NO_READER:
        answers["selector, by the talk reader"] = _ask_selector(
            drawn, Decider(encoder, _CONFIG, reader=open_reader(reader))
        )
    table = Table("chosen as the wizard did, %", "equal numbers", *_NAMES, "as often as they occur")
    for name, indices in answers.items():
        table.add_row(name, *_score(drawn, indices, shares))
    console = Console(highlight=False, width=170)
    console.print(table)
    counts = ", ".join(f"{name} {100 * share:.0f} %" for name, share in zip(_NAMES, shares, strict=True))
    console.print(
        f"{len(drawn)} of {len(every)} choices by {len({c.person for c in drawn})} people; {counts}; chance 25 %"
    )


def find_choices(session: Json) -> list[Choice]:
    """Return the choices of a session: the robot's replies that come at once and are about the person's last words."""
    rows = read_rows(session)
    choices: list[Choice] = []
    spoken: list[str] = []
    for row, then in pairwise(rows):
        if row["by"] != "person":
            continue
        spoken.append(row["text"])
        is_reply = then["by"] == "robot" and then["antecedent"].rstrip("*") == row["id"]
        chosen = next((n for n, kinds in enumerate(_CHOICES.values()) if then["relation"] in kinds), None)
        if is_reply and chosen is not None:
            choices.append(Choice(person=person_of(session["id"]), spoken=tuple(spoken[-_SPOKEN:]), chosen=chosen))
    return choices


def _ask_selector(choices: Sequence[Choice], decider: Decider) -> list[int]:
    indices: list[int] = []
    for choice in track(choices, "asking the selector", console=Console(stderr=True)):
        utterances = [
            Utterance(
                stamp_ns=second * NS_PER_S,
                utterance_id=f"u{second}",
                speaker=Speaker.USER,
                speaker_id="person",
                text=text,
                start_ns=second * NS_PER_S,
                end_ns=second * NS_PER_S + NS_PER_S // 2,
                source_topic="talk",
            )
            for second, text in enumerate(choice.spoken)
        ]
        window = Window(start_ns=0, end_ns=len(utterances) * NS_PER_S, utterances=tuple(utterances))
        scene = f"{_SCENE} The person says: {choice.spoken[-1]}."
        request = Request(query_id="choice", candidates=_CANDIDATES, situation=scene, others=(), window=window)
        decision = decider.decide(request, Deadline(ReplayClock(window.end_ns))).decision
        indices.append(-1 if decision.chosen_index is None else decision.chosen_index)
    return indices


def _choose_nearest(choices: Sequence[Choice], encoder: SentenceEncoder) -> list[int]:
    """Choose by the mean of the requests that other people's wizards answered so."""
    vectors = np.asarray(encoder.encode([choice.spoken[-1] for choice in choices]))
    chosen, people = np.array([choice.chosen for choice in choices]), np.array([choice.person for choice in choices])
    indices: list[int] = []
    for vector, person in zip(vectors, people, strict=True):
        means = [vectors[(chosen == kind) & (people != person)].mean(axis=0) for kind in range(len(_NAMES))]
        indices.append(int(np.argmax([vector @ mean / np.linalg.norm(mean) for mean in means])))
    return indices


def _score(choices: Sequence[Choice], indices: Sequence[int], shares: NDArray[np.float64]) -> list[str]:
    chosen = np.array([choice.chosen for choice in choices])
    is_right = 100.0 * (np.array(indices) == chosen)
    people = np.unique([choice.person for choice in choices], return_inverse=True)[1]
    by_person = [is_right[people == person] for person in range(people.max() + 1)]
    drawn = [np.concatenate([by_person[n] for n in row]).mean() for row in draw_clusters(len(by_person), _DRAWS)]
    low, high = percentile_interval(drawn)
    recalls = np.array([is_right[chosen == kind].mean() for kind in range(len(_NAMES))])
    return [f"{is_right.mean():.0f} [{low:.0f}, {high:.0f}]", *(f"{r:.0f}" for r in recalls), f"{recalls @ shares:.0f}"]


if __name__ == "__main__":
    run_command(measure_choices)
