"""Fine-tune a transformers checkpoint as the judge, by LoRA on the labelled talks.

The model learns to answer the judge's first question with the letter of an error, a competence or ordinary conduct.
OUT/adapter holds the adapter; OUT/model holds the checkpoint with the adapter merged into it, which the transformers
engine loads as any other. Calibrate the result before use: `./tactful calibrate judge`.

This recipe has not been run on a GPU. It ran on a tiny checkpoint with random weights on a CPU alone, so its settings
are usual ones that nobody has tuned, and what it brings is not measured.

python -m calibration.lora_recipe --model FOLDER --out FOLDER [--limit 2000] [--epochs 1]
"""

import argparse
import shutil
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from calibration.judge_examples import JudgeExample, judge_examples
from calibration.labelled_talks import SHIPPED, read_talks
from norm_core.engines.option_letters import letter_options
from norm_core.engines.prompt import Text
from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.extras import install_command

if TYPE_CHECKING:
    import torch

    from norm_core.engines.transformers.prompt_tokens import PromptTokenizer

NEEDED = ("torch", "transformers", "accelerate", "peft")
_BATCH = 16  # turns a step; one is read at a time, so that memory is that of one
_EVERY = 10  # of ten talks, one is left out to measure on
_WEIGHTS = (".safetensors", ".bin", ".index.json", ".pt", ".pth")


@record
class LoraOptions:
    """What is trained on what, and how long."""

    model: Path
    out: Path
    talks: Path = SHIPPED
    limit: int = 0
    epochs: int = 1
    rank: int = 16
    learning_rate: float = 1e-4
    seed: int = 0
    device: str = "auto"


@record
class LoraResult:
    """The log loss on talks that were left out, before and after."""

    trained_on: int
    measured_on: int
    loss_before: float
    loss_after: float


def fine_tune(options: LoraOptions) -> LoraResult:
    """Train, measure on left-out talks, and write the adapter and the merged checkpoint."""
    if lacking := [name for name in NEEDED if find_spec(name) is None]:
        raise TactfulError(
            f"the LoRA recipe needs {', '.join(lacking)}, which this environment lacks; "
            f"install it with {install_command('finetune')}"
        )
    # Imported here: the default environment lacks them.
    import torch  # noqa: PLC0415
    from peft import LoraConfig, get_peft_model  # noqa: PLC0415

    from norm_core.engines.transformers.loading import load_model  # noqa: PLC0415

    if options.out.exists() and any(options.out.iterdir()):
        raise TactfulError(f"--out {options.out}: the folder is not empty; name a new one")
    train, held = _split(options)
    network, reader = load_model(options.model, dtype="auto", quantization="", device=options.device)
    torch.manual_seed(options.seed)
    adapted: Any = get_peft_model(
        network,
        LoraConfig(r=options.rank, lora_alpha=2 * options.rank, lora_dropout=0.05, target_modules="all-linear"),
    )
    before = _measure(adapted, reader, held)
    _train(adapted, reader, train, options)
    after = _measure(adapted, reader, held)
    adapted.save_pretrained(options.out / "adapter")
    adapted.merge_and_unload().save_pretrained(options.out / "model")
    for path in options.model.iterdir():  # the tokenizer, the chat template and what reads pictures
        if path.is_file() and not path.name.endswith(_WEIGHTS) and not (options.out / "model" / path.name).exists():
            shutil.copy(path, options.out / "model")
    return LoraResult(trained_on=len(train), measured_on=len(held), loss_before=before, loss_after=after)


def _split(options: LoraOptions) -> tuple[list[JudgeExample], list[JudgeExample]]:
    """Return turns to train on, shuffled, and the turns of every tenth talk, at most a tenth as many."""
    every = list(judge_examples(read_talks(options.talks)))
    order = np.random.default_rng(options.seed).permutation(len(every))
    held = [every[place] for place in order if every[place].talk % _EVERY == 0]
    train = [every[place] for place in order if every[place].talk % _EVERY]
    train = train[: options.limit or None]
    held = held[: max(1, len(train) // _EVERY)]
    if not train or not held:
        raise TactfulError(f"{options.talks}: holds too few talks to leave one in {_EVERY} out; add talks")
    return train, held


def _train(network: Any, reader: "PromptTokenizer", train: Sequence[JudgeExample], options: LoraOptions) -> None:
    import torch  # noqa: PLC0415

    weights = [one for one in network.parameters() if one.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=options.learning_rate)
    random = np.random.default_rng(options.seed)
    network.train()
    for epoch in range(options.epochs):
        order = random.permutation(len(train))
        for begin in range(0, len(order), _BATCH):
            batch = order[begin : begin + _BATCH]
            total = 0.0
            for place in batch:
                loss = _loss(network, reader, train[place]) / len(batch)
                loss.backward()
                total += float(loss.detach())
            torch.nn.utils.clip_grad_norm_(weights, 1.0)
            optimizer.step()
            optimizer.zero_grad()
            print(f"epoch {epoch + 1}, {begin + len(batch)}/{len(order)}: loss {total:.3f}", file=sys.stderr)


def _measure(network: Any, reader: "PromptTokenizer", held: Sequence[JudgeExample]) -> float:
    import torch  # noqa: PLC0415

    network.eval()
    with torch.no_grad():
        return float(np.mean([float(_loss(network, reader, one)) for one in held]))


def _loss(network: Any, reader: "PromptTokenizer", example: JudgeExample) -> "torch.Tensor":
    """Return the surprise at the letter of the label, with the tokens as the engine reads them."""
    import torch  # noqa: PLC0415

    question = example.questions.detection
    asked = (*question.parts, Text(text=letter_options(question.options)))
    spans = [*reader.opening(example.questions.prompt.parts), *reader.closing(asked)]
    ids = torch.cat([span.ids for span in spans], dim=-1).to(network.device)
    logits = network(input_ids=ids).logits[0, -1].float()
    letter = reader.letters()[example.answer]
    return torch.logsumexp(logits, -1) - torch.logsumexp(logits[letter], -1)


def main() -> None:
    """Read the options, train, and print what the training changed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True, help="folder of a transformers checkpoint")
    parser.add_argument("--out", type=Path, required=True, help="new folder for the adapter and the merged checkpoint")
    parser.add_argument("--talks", type=Path, default=SHIPPED, help="folder of labelled talks")
    parser.add_argument("--limit", type=int, default=0, help="most turns to train on; 0 for all")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--learning-rate", type=float, default=1e-4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    try:
        result = fine_tune(LoraOptions(**vars(parser.parse_args())))
    except TactfulError as error:
        raise SystemExit(str(error)) from None
    print(
        f"trained on {result.trained_on} turns; log loss on {result.measured_on} turns of other talks: "
        f"{result.loss_before:.3f} before, {result.loss_after:.3f} after"
    )


if __name__ == "__main__":
    main()
