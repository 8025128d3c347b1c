"""The prompt that a page shows is the one that the judge was asked."""

from pathlib import Path

from norm_core.records.flag import Attribute
from norm_core.records.outcome import Outcome
from norm_monitor.judge.judge import JudgeConfig
from norm_monitor.judge.prompt_files import PromptFiles
from study_desk.view.view_server import prompt_text
from tests.norm_monitor.judge.test_judge import answering, judge, robot_turn


def test_a_judgement_s_digest_finds_what_was_asked(tmp_path: Path) -> None:
    backend = answering([4, 0, 0], {Attribute.EMOTIONS})
    asked, view = judge(backend), robot_turn("Could you repeat that?")
    judged = asked.judge(view)
    digest = judged.provenance.prompt_digest
    assert judged.outcome is Outcome.ANSWERED
    PromptFiles(tmp_path, JudgeConfig(model="m"), backend.model_info).write(view, asked.plan(view))
    (tmp_path / "other.json").write_text("no prompt", encoding="utf-8")
    assert "Could you repeat that?" in prompt_text(tmp_path, digest)
    assert prompt_text(tmp_path, "0" * 64) == ""


def test_the_prompt_is_planned_once_for_the_judge_and_the_file(tmp_path: Path) -> None:
    backend = answering([4, 0, 0], {Attribute.EMOTIONS})
    asked, view = judge(backend), robot_turn()
    planned = asked.plan(robot_turn("What did you say just now?"))  # another unit's, so that planning again would show
    digest = asked.judge(view, planned=planned).provenance.prompt_digest
    PromptFiles(tmp_path, JudgeConfig(model="m"), backend.model_info).write(view, planned)
    assert "What did you say just now?" in prompt_text(tmp_path, digest)
