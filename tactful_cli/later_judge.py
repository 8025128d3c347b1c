"""A judge that a service asks later: write its questions about talks, or use the answers that came back."""

from pathlib import Path
from typing import Annotated, Self

import typer

from norm_core.engines.openai.batch import BatchAnswers, BatchWriter, read_answers
from norm_core.models.manifest import Prices
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import WallClock
from norm_core.runtime.wording import count_of
from norm_monitor.judge.coding import MISSING, Form, RecordedJudge, requests_about, talk_of
from norm_monitor.judge.judge import JudgeConfig
from sim_replays.monitor_bench.judge_stand_in import Attend, JudgeStandIn, UnitCollector
from tactful_cli.console import complain, err

JUDGE = "judge"  # the model in a batch, where none is named

AskLater = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Write the questions of a judge there, as a batch for an OpenAI-compatible service. Asks no model.",
    ),
]
JudgeAnswers = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", help="Let a judge add to the flags by the service's answers to such a batch."),
]
PicturesMayLeave = Annotated[
    bool, typer.Option("--pictures-may-leave", help="Allow sending images to a model on another machine.")
]
QuestionForm = Annotated[
    Form,
    typer.Option(
        "--form", help="talk: a request for each minute of talk, about all its moments; unit: one for each moment."
    ),
]
Price = Annotated[
    str, typer.Option(metavar="IN,OUT", help="Prices of a million tokens read and written, for the estimate.")
]


def finish_batch(writer: BatchWriter, prices: Prices | None) -> None:
    """Write what is left, and print the size of the batch."""
    writer.flush()
    size = writer.size
    text = size.describe(prices) if size.requests else "no request was written: there is nothing to ask"
    err.print(f"{writer.folder}: {text}", soft_wrap=True, markup=False)


class LaterJudge:
    """What attends to the monitor in place of a model that runs now."""

    def __init__(
        self,
        questions: Path | None,
        answers: Path | None,
        model: str = JUDGE,
        config: JudgeConfig | None = None,
        form: Form = Form.TALK,
    ) -> None:
        """Create the folder of questions, or read the answers. Raises BatchError if either fails."""
        if questions and answers:
            raise TactfulError("--ask-later and --answers: exclude each other; give one")
        self._config, self._form, self._folder = config or JudgeConfig(), form, questions or answers
        self._talk, self._collector = "", UnitCollector(keeps_frames=self._config.pictures_may_leave)
        self._writer = BatchWriter(questions, model) if questions else None
        self.answers = read_answers(answers) if answers else BatchAnswers(by_id={})
        self.stand_in = JudgeStandIn(RecordedJudge("", self.answers), WallClock())

    @classmethod
    def of(  # noqa: PLR0917
        cls, questions: Path | None, answers: Path | None, out: Path | None, model: str, config: JudgeConfig, form: Form
    ) -> Self | None:
        """Return the judge that options name, if any; questions need each talk to run, and a stored run skips some."""
        if questions and out:
            raise TactfulError("--ask-later and --out: exclude each other; give --out with --answers")
        return cls(questions, answers, model, config, form) if questions or answers else None

    @property
    def model(self) -> str:
        """The models that answered, by their own names."""
        names = sorted({answer.model for answer in self.answers.by_id.values() if answer.model})
        return ", ".join(names) or JUDGE

    def attend(self, talk: str) -> Attend:
        """Return what attends to the monitor of a talk."""
        if self._writer:
            self._write(self._writer)
            self._talk = talk
            return self._collector
        self.stand_in.judge = RecordedJudge(talk, self.answers, self._config)
        return self.stand_in

    def _write(self, writer: BatchWriter) -> None:
        """Write the questions about the latest talk."""
        for request in requests_about(self._talk, self._collector.views, self._config, self._form):
            writer.add(request)
        self._collector.views.clear()

    def conclude(self, prices: Prices | None) -> None:
        """Write what is left, and print the size of the questions, or what became of the answers."""
        if self._writer:
            self._write(self._writer)
            finish_batch(self._writer, prices)
            return
        for line in self.stand_in.summary():
            err.print(line, soft_wrap=True, markup=False)
        if self.answers.unreadable:
            complain(f"{self._folder}: {count_of(self.answers.unreadable, 'line')} cannot be read and count as missing")

    @property
    def fits_nothing(self) -> bool:
        """Whether no moment has an answer of this folder; complains of it."""
        units = len(self.stand_in.spent_s)
        if not units or self.stand_in.reasons[MISSING] < units:
            return False
        talks = sorted({talk_of(key) for key in self.answers.by_id})
        complain(
            f"{self._folder}: no answer is about these talks, but about {', '.join(talks[:5])}; "
            "give the bags and options of --ask-later"
        )
        return True
