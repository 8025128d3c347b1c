"""The LoRA recipe: its examples are the judge's own question, and the engine serves what it writes."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from calibration.judge_examples import judge_examples
from calibration.labelled_talks import read_talks
from calibration.lora_recipe import NEEDED, LoraOptions, fine_tune
from norm_core.engines.engine import Engine
from norm_core.prompts import judge as prompts
from norm_core.prompts.judge import MARK
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import WallClock

TALK = """# pharmacy counter; a woman; the robot answers questions
u: Where do I queue?
r: On the left, by the window. |
u: I have lost my mother.
r: Great! Next, please. | - emotions
u: That hurts.
r: I am sorry, I should have listened. | + emotions norms
"""


@pytest.fixture
def talks(tmp_path: Path) -> Path:
    folder = tmp_path / "talks"
    folder.mkdir()
    (folder / "counter.txt").write_text(TALK * 12, encoding="utf-8")
    return folder


def test_an_example_is_the_judge_s_question_with_the_label_as_answer(talks: Path) -> None:
    examples = list(judge_examples(read_talks(talks)[:1]))
    options = prompts.detection().options
    assert [options[one.answer] for one in examples] == ["ordinary conduct", "a social error", "a social competence"]
    for one, said in zip(examples, ("On the left", "Great!", "I am sorry"), strict=True):
        assert one.questions.detection == prompts.detection()
        (marked,) = [line for line in one.questions.prompt.as_text().splitlines() if line.startswith(f"{MARK} ")]
        assert said in marked
    assert "That hurts." in examples[1].questions.prompt.as_text()
    assert "I should have listened" not in examples[1].questions.prompt.as_text()


@pytest.mark.skipif(find_spec("peft") is not None, reason="peft is in this environment")
def test_without_peft_the_remedy_is_named(talks: Path, tmp_path: Path) -> None:
    with pytest.raises(TactfulError, match=r"needs .*peft.* install it with ./tactful setup finetune"):
        fine_tune(LoraOptions(model=tmp_path, out=tmp_path / "out", talks=talks))


@pytest.mark.torch
@pytest.mark.skipif(any(find_spec(name) is None for name in NEEDED), reason="peft is not in this environment")
def test_the_engine_serves_what_a_tiny_checkpoint_learnt(talks: Path, tmp_path: Path) -> None:
    from norm_core.engines.transformers.backend import TransformersBackend
    from tests.norm_core.engines.tiny_checkpoints import built

    options = LoraOptions(
        model=built("llama", tmp_path / "tiny"), out=tmp_path / "out", talks=talks, epochs=3, learning_rate=1e-2
    )
    result = fine_tune(options)
    assert (result.trained_on, result.measured_on) == (30, 3)
    assert result.loss_after < result.loss_before
    assert (options.out / "adapter/adapter_config.json").is_file()
    example = next(judge_examples(read_talks(talks)))
    engine = Engine(TransformersBackend(options.out / "model"), WallClock())
    (answer,) = engine.ask_many(example.questions.prompt, [example.questions.detection])
    assert sum(answer.probabilities) == pytest.approx(1)
    with pytest.raises(TactfulError, match="is not empty; name a new one"):
        fine_tune(options)
