"""Teach the talk reader: `python -m calibration.talk_reader.train --base GGUF --material FILE --out FOLDER`.

The base stays as it is; a change of low rank and the heads are taught. A run that is stopped goes on where it was,
to the minute. What is left out is read at the end of each half pass: its losses stand in `curve.csv`, teaching stops
where they no longer fall, and the outputs at the ends of its lines stand in `left_out.npz`.
"""

import csv
import json
import os
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from numpy.typing import NDArray
from rich.console import Console
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn import functional

from calibration.command import run_command
from calibration.talk_reader.decoder import GOOD, HELD, ReaderModel
from calibration.talk_reader.lessons import Kind, Target, TaughtTalk, misheard, read_material
from norm_core.engines.reader.gguf_tokenizer import load_tokenizer
from norm_core.engines.reader.reader_setup import read_decoder_shape, read_decoder_tensor
from norm_core.engines.talk_reader import HEAD_OUTPUTS, OFFSETS, OPTION_OUTPUTS, TURN_OUTPUTS
from norm_core.models.gguf_file import GgufFile
from norm_core.records.flag import Attribute
from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError

_err = Console(stderr=True, highlight=False)
_ATTRIBUTES = list(Attribute)
# A target: kind, attributes, held, good, verdict; what is unknown is not a number.
_KIND, _HELD, _GOOD, _VERDICT, _POSSIBLE, _FITTING, _TARGETS = 0, 8, 9, 10, 11, 12, 13
_OFFSET_SHARES = (1.0, 0.5, 0.5)
_LOSS_SHARES = {
    "kind": 1.0,
    "attributes": 0.5,
    "held": 1.0,
    "good": 0.5,
    "verdict": 0.5,
    "possible": 0.5,
    "fitting": 1.0,
}
_SAVED_EVERY_S = 60
_WARM_SHARE = 0.05
_PATIENCE = 3


@record
class Batch:
    """Rows of tokens, and what is known at the ends of lines."""

    tokens: Tensor
    places: Tensor
    talk: Tensor
    option: Tensor
    ends: tuple[Tensor, Tensor]
    targets: Tensor  # [lines, offsets, targets]
    corpora: Tensor  # the number of each line's corpus
    lines: tuple[tuple[str, int], ...]  # the talk and the place of each end


class Packer:
    """Put talks side by side in rows of a length, and these in batches."""

    def __init__(self, encode: Callable[[str], list[int]], corpora: Sequence[str], length: int, rows: int) -> None:
        """Take a tokenizer, and the names of all corpora."""
        self.encode, self.length, self.rows = encode, length, rows
        self.corpora = {name: number for number, name in enumerate(corpora)}

    def batches(self, talks: Iterable[TaughtTalk]) -> Iterator[Batch]:
        """Yield batches in the order of talks; the end of a talk longer than a row is left out."""
        rows: list[list[tuple[TaughtTalk, list[list[int]]]]] = []
        free = 0
        for talk in talks:
            lines: list[list[int]] = []
            taken = 0
            for line in talk.lines:
                tokens = self.encode(line)
                if taken + len(tokens) > self.length:
                    break
                lines.append(tokens)
                taken += len(tokens)
            if taken > free:
                if len(rows) == self.rows:
                    yield self._batch(rows)
                    rows = []
                rows.append([])
                free = self.length
            if lines:
                rows[-1].append((talk, lines))
                free -= taken
        if rows:
            yield self._batch(rows)

    def _batch(self, rows: Sequence[Sequence[tuple[TaughtTalk, list[list[int]]]]]) -> Batch:
        tokens = np.zeros((len(rows), self.length), np.int64)
        places, talk_of, option_of = np.zeros_like(tokens), np.full_like(tokens, -1), np.zeros_like(tokens)
        ends: list[tuple[int, int]] = []
        names: list[tuple[str, int]] = []
        targets: list[NDArray[np.float32]] = []
        corpora: list[int] = []
        for row, packed in enumerate(rows):
            at = 0
            for number, (talk, lines) in enumerate(packed):
                begin, read = at, 0
                for place, line in enumerate(lines):
                    here = slice(at, at + len(line))
                    tokens[row, here] = line
                    places[row, here] = np.arange(read, read + len(line))
                    if talk.is_scene and place in talk.machine:
                        option_of[row, here] = place
                    else:
                        read += len(line)
                    at += len(line)
                    ends.append((row, at - 1))
                    names.append((talk.id, place))
                    targets.append(_targets(talk, place))
                    corpora.append(self.corpora[talk.corpus])
                talk_of[row, begin:at] = number
        where = torch.tensor(ends)
        return Batch(
            tokens=torch.from_numpy(tokens),
            places=torch.from_numpy(places),
            talk=torch.from_numpy(talk_of),
            option=torch.from_numpy(option_of),
            ends=(where[:, 0], where[:, 1]),
            targets=torch.from_numpy(np.stack(targets)),
            corpora=torch.tensor(corpora),
            lines=tuple(names),
        )


def _targets(talk: TaughtTalk, place: int) -> NDArray[np.float32]:
    rows = np.full((OFFSETS, _TARGETS), np.nan, np.float32)
    for offset in range(OFFSETS):
        target = talk.targets.get(place - offset)
        if target is not None:
            rows[offset] = _row(target)
    return rows


def _row(target: Target) -> list[float]:
    def known(value: float | None) -> float:
        return float("nan") if value is None else value

    marked = target.kind not in {None, Kind.ORDINARY} and target.attributes
    attributes = [float(attribute in target.attributes) if marked else float("nan") for attribute in _ATTRIBUTES]
    rest = (target.held, target.good, target.verdict, target.possible, target.fitting)
    return [known(target.kind), *attributes, *map(known, rest)]


def losses(outputs: Tensor, batch: Batch, scales: Tensor) -> dict[str, Tensor]:
    """Return the mean loss of each kind of target; `scales` holds a slope and a base for each corpus's verdicts."""
    outputs, options = outputs[:, :-OPTION_OUTPUTS].unflatten(1, (OFFSETS, TURN_OUTPUTS)), outputs[:, -OPTION_OUTPUTS:]
    shares = torch.tensor(_OFFSET_SHARES, device=outputs.device).expand(outputs.shape[:2])
    targets = batch.targets
    losses: dict[str, Tensor] = {}

    def mean(name: str, values: Tensor, is_known: Tensor, shares: Tensor = shares) -> None:
        weight = shares * is_known
        losses[name] = (values * weight).sum() / weight.sum().clamp(min=1.0)

    kind = targets[..., _KIND]
    cross = functional.cross_entropy(
        outputs[..., : len(Kind)].flatten(0, 1), kind.nan_to_num(0).long().flatten(), reduction="none"
    )
    mean("kind", cross.view(kind.shape), ~kind.isnan())
    named = targets[..., _KIND + 1 : _HELD]
    logits = outputs[..., len(Kind) : HELD]
    entropies = functional.binary_cross_entropy_with_logits(logits, named.nan_to_num(0), reduction="none")
    mean("attributes", entropies.mean(-1), ~named[..., 0].isnan())
    slope, base = scales[batch.corpora].unbind(-1)
    verdicts = outputs[..., HELD] * functional.softplus(slope)[:, None] + base[:, None]
    for name, aim, logit in (
        ("held", targets[..., _HELD], outputs[..., HELD]),
        ("good", targets[..., _GOOD], outputs[..., GOOD]),
        ("verdict", targets[..., _VERDICT], verdicts),
        ("possible", targets[:, :1, _POSSIBLE], options[:, :1]),
        ("fitting", targets[:, :1, _FITTING], options[:, 1:]),
    ):
        entropies = functional.binary_cross_entropy_with_logits(logit, aim.nan_to_num(0), reduction="none")
        mean(name, entropies, ~aim.isnan(), shares[:, : aim.shape[1]])
    return losses


class Teaching:
    """A model, its optimizer and the place in the material."""

    def __init__(  # noqa: PLR0917
        self, base: GgufFile, corpora: Sequence[str], rank: int, rate: float, steps: int, device: str
    ) -> None:
        """Load the base onto a device."""
        self.device, self.steps, self.step, self.tokens = device, max(steps, 1), 0, 0
        self.passes = self.pass_began = 0  # whole passes, and the step at which the present one began
        kind, shape = torch.bfloat16, read_decoder_shape(base)

        def tensor(name: str) -> Tensor | None:
            if name not in base.shapes:
                return None
            values = torch.from_numpy(np.array(read_decoder_tensor(base, shape, name)))
            return values.to(device, kind if values.dim() > 1 else torch.float32)

        self.model = ReaderModel(shape, tensor, rank).to(device)
        embeddings = tensor("token_embd.weight")
        assert embeddings is not None
        self.embeddings = embeddings
        self.scales = torch.nn.Parameter(torch.tensor([[0.5, 0.0]] * len(corpora), device=device))
        taught = self.model.taught()
        heads = [value for name, value in taught.items() if name.startswith("head.")]
        rest = [value for name, value in taught.items() if not name.startswith("head.")]
        self.parameters = [*taught.values(), self.scales]
        self.optimizer = torch.optim.AdamW(
            [{"params": rest, "lr": rate}, {"params": [*heads, self.scales], "lr": 2 * rate}], weight_decay=0.01
        )
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, self._rate)

    def _rate(self, step: int) -> float:
        warm = max(1, int(_WARM_SHARE * self.steps))
        if step < warm:
            return (step + 1) / warm
        return 0.05 + 0.95 * 0.5 * (1 + float(np.cos(np.pi * min(1.0, (step - warm) / max(1, self.steps - warm)))))

    def outputs(self, batch: Batch) -> Tensor:
        """Read a batch."""
        with torch.autocast(self.device, torch.bfloat16):
            outputs: Tensor = self.model(
                self.embeddings[batch.tokens], batch.places, batch.talk, batch.option, batch.ends
            )
        return outputs

    def to_device(self, batch: Batch) -> Batch:
        """Move a batch to the model's device."""
        moved = {
            name: getattr(batch, name).to(self.device)
            for name in ("tokens", "places", "talk", "option", "targets", "corpora")
        }
        ends = batch.ends[0].to(self.device), batch.ends[1].to(self.device)
        return Batch(**moved, ends=ends, lines=batch.lines)

    def learn(self, batch: Batch) -> dict[str, Tensor]:
        """Take one step."""
        batch = self.to_device(batch)
        parts = losses(self.outputs(batch), batch, self.scales)
        loss: Tensor = sum(
            (_LOSS_SHARES[name] * part for name, part in parts.items()), torch.zeros((), device=self.device)
        )
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
        self.optimizer.step()
        self.schedule.step()
        self.step += 1
        self.tokens += int((batch.talk >= 0).sum())
        return {name: part.detach() for name, part in parts.items()}

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def read(self, batches: Iterable[Batch]) -> Iterator[tuple[Batch, Tensor]]:
        """Yield the outputs of each batch."""
        for batch in batches:
            moved = self.to_device(batch)
            yield moved, self.outputs(moved)

    def state(self) -> dict[str, Any]:
        """Return all that a run needs to go on."""
        return {
            "taught": {name: value.detach() for name, value in self.model.taught().items()},
            "scales": self.scales.detach(),
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
            "step": self.step,
            "tokens": self.tokens,
            "passes": self.passes,
            "pass_began": self.pass_began,
        }

    def load_adapter(self, path: Path) -> None:
        """Begin with what an adapter holds."""
        held = load_file(path)
        with torch.no_grad():
            for name, value in self.model.taught().items():
                value.copy_(held[name.replace(".linears", "")])

    def load(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        own = self.model.taught()
        with torch.no_grad():
            for name, value in state["taught"].items():
                own[name].copy_(value)
            self.scales.copy_(state["scales"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["schedule"])
        self.step, self.tokens = state["step"], state["tokens"]
        self.passes, self.pass_began = state["passes"], state["pass_began"]


def write_adapter(teaching: Teaching, base: GgufFile, about: dict[str, str], path: Path) -> None:
    """Write what was taught in half precision."""
    tensors: dict[str, Tensor] = {}
    for name, value in teaching.model.taught().items():
        short = name.replace(".linears", "")
        tensors[short] = value.detach().to("cpu", torch.float16).contiguous()
    save_file(tensors, path, {"base_sha256": base.sha256, **about})


def write_outputs(found: Iterable[tuple[Batch, Tensor]], path: Path) -> None:
    """Write the outputs at the end of each line that was read."""
    names: list[tuple[str, int]] = []
    rows: list[NDArray[np.float16]] = []
    for batch, outputs in found:
        names += batch.lines
        rows.append(outputs.to("cpu", torch.float16).numpy())
    values = np.concatenate(rows) if rows else np.zeros((0, HEAD_OUTPUTS), np.float16)
    talks = sorted({name for name, _ in names})
    numbers = {name: number for number, name in enumerate(talks)}
    np.savez_compressed(
        path,
        talks=np.array(talks),
        talk=np.array([numbers[name] for name, _ in names], np.int32),
        line=np.array([place for _, place in names], np.int32),
        outputs=values,
    )


def teach(  # noqa: PLR0917
    base_file: Annotated[Path, typer.Option("--base", help="GGUF of the base model.")],
    material: Annotated[list[Path], typer.Option(help="Files that calibration.talk_reader.material wrote.")],
    out: Annotated[Path, typer.Option(help="Folder of the run; an interrupted run in it goes on.")],
    without: Annotated[list[str] | None, typer.Option(help="Corpus or writer to leave out whole.")] = None,
    begin_with: Annotated[Path | None, typer.Option("--from", help="Adapter to go on from.")] = None,
    share: Annotated[float, typer.Option(help="Share of the talks that a strong model answered.")] = 1.0,
    passes: Annotated[float, typer.Option(help="Passes over the material.")] = 2.0,
    rank: Annotated[int, typer.Option(help="Rank of the change.")] = 12,
    rate: Annotated[float, typer.Option(help="Highest learning rate.")] = 5e-4,
    length: Annotated[int, typer.Option(help="Tokens in a row.")] = 1024,
    rows: Annotated[int, typer.Option(help="Rows in a step.")] = 4,
    seed: Annotated[int, typer.Option(help="Seed of order, start and mishearing.")] = 0,
    limit_s: Annotated[float, typer.Option(help="Seconds after which the run stops, to go on later.")] = float("inf"),
    read_most: Annotated[int, typer.Option(help="Talks left out of a corpus that are read for the curve.")] = 150,
) -> None:
    """Teach the reader on all but what is left out."""
    began_s = time.monotonic()
    out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu":
        os.nice(10)
    talks = read_material(material)
    corpora = sorted({talk.corpus for talk in talks})
    left_out = [talk for talk in talks if {talk.corpus, talk.writer} & set(without or ())]
    taught = _taught(talks, left_out, share, seed)
    base = GgufFile(base_file)
    tokenizer = load_tokenizer(base)
    packer = Packer(lambda line: list(tokenizer.encode(line, add_special_tokens=False).ids), corpora, length, rows)
    per_pass = sum(1 for _ in packer.batches(taught))
    if not per_pass:
        raise TactfulError(f"--length: every talk begins with a line of more than {length} tokens; take longer rows")
    teaching = Teaching(base, corpora, rank, rate, int(per_pass * passes), device)
    saved = out / "state.pt"
    if begin_with and not saved.exists():
        teaching.load_adapter(begin_with)
    if saved.exists():
        teaching.load(torch.load(saved, map_location=device, weights_only=True))
    steps = f"{per_pass} steps a pass, {teaching.steps} in all, from step {teaching.step}"
    _err.print(f"{len(taught)} talks on {device}: {steps}")
    watched = [
        talk for name in corpora for talk in _sample([talk for talk in left_out if talk.corpus == name], read_most)
    ]
    curve = Curve(out / "curve.csv", teaching, packer, watched, corpora)
    saved_s = time.monotonic()
    for batch in lessons(taught, packer, teaching, seed):
        parts = teaching.learn(batch)
        is_due = teaching.step % max(1, per_pass // 2) == 0 or teaching.step == teaching.steps
        if is_due and not curve.add(parts, began_s):
            _err.print("what was left out is read no better: stopped")
            break
        now_s = time.monotonic()
        if now_s - saved_s > _SAVED_EVERY_S or now_s - began_s > limit_s:
            torch.save(teaching.state(), out / "state.new")
            (out / "state.new").replace(saved)  # a run that is killed while it writes keeps the state before
            saved_s = now_s
        if now_s - began_s > limit_s:
            _err.print(f"stopped at step {teaching.step} of {teaching.steps}; the same command goes on")
            return
    about = {
        "rank": str(rank),
        "without": json.dumps(sorted(without or ())),
        "taught": json.dumps({"talks": len(taught), "steps": teaching.step, "tokens": teaching.tokens}),
        "scales": json.dumps(dict(zip(corpora, teaching.scales.tolist(), strict=True))),
    }
    write_adapter(teaching, base, about, out / "adapter.safetensors")
    write_outputs(teaching.read(packer.batches(left_out)), out / "left_out.npz")
    saved.unlink(missing_ok=True)
    _err.print(f"done in {time.monotonic() - began_s:.0f} s")


def _taught(talks: Sequence[TaughtTalk], left_out: Sequence[TaughtTalk], share: float, seed: int) -> list[TaughtTalk]:
    """Return what is taught: what is not left out, with a share of the talks that a strong model answered."""
    draw = random.Random(seed)
    left_out_ids = {id(talk) for talk in left_out}
    taught = [talk for talk in talks if id(talk) not in left_out_ids and is_taught(talk)]
    taught = [talk for talk in taught if not _is_answered(talk) or draw.random() < share]
    if not taught:
        raise TactfulError("--material: nothing is left to teach; leave out less")
    return taught


def lessons(taught: Sequence[TaughtTalk], packer: Packer, teaching: "Teaching", seed: int) -> Iterator[Batch]:
    """Yield the batches that are left, in another order and misheard anew in each pass.

    A talk that is misheard loses words, so a pass may have fewer batches than the material has.
    """
    while teaching.step < teaching.steps:
        skip = teaching.step - teaching.pass_began
        order = random.Random(f"{seed}/{teaching.passes}")
        turn = list(taught)
        order.shuffle(turn)
        for place, batch in enumerate(packer.batches([misheard(talk, order) for talk in turn])):
            if place >= skip and teaching.step < teaching.steps:
                yield batch
        teaching.passes, teaching.pass_began = teaching.passes + 1, teaching.step


class Curve:
    """The losses on what is taught and on what is left out, as a file, and whether they still fall."""

    def __init__(
        self,
        path: Path,
        teaching: Teaching,
        packer: Packer,
        talks: Sequence[TaughtTalk],
        corpora: Sequence[str],
    ) -> None:
        self._path, self._teaching, self._packer = path, teaching, packer
        self._by_corpus = {name: [talk for talk in talks if talk.corpus == name] for name in corpora}
        self._least, self._since = float("inf"), 0

    def add(self, parts: Mapping[str, Tensor], began_s: float) -> bool:
        """Measure, add a row, and return whether to go on."""
        means = {f"{corpus}_{name}": loss for corpus in self._by_corpus for name, loss in self._means(corpus).items()}
        taught = {f"taught_{name}": round(float(part), 4) for name, part in parts.items()}
        row = {
            "step": self._teaching.step,
            "seconds": round(time.monotonic() - began_s),
            "tokens": self._teaching.tokens,
        }
        _err.print(f"{row} {means}")
        is_new = not self._path.exists()
        with self._path.open("a", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, [*row, *taught, *means], lineterminator="\n")
            if is_new:
                writer.writeheader()
            writer.writerow({**row, **taught, **means})
        level = sum(means.values())
        self._least, self._since = (level, 0) if level < self._least or not means else (self._least, self._since + 1)
        return self._since < _PATIENCE

    def _means(self, corpus: str) -> dict[str, float]:
        batches = self._teaching.read(self._packer.batches(self._by_corpus[corpus]))
        rows = [losses(outputs, batch, self._teaching.scales) for batch, outputs in batches]
        means: dict[str, float] = {}
        for name in ("kind", "held", "possible", "fitting"):
            values = [float(row[name]) for row in rows if row[name] > 0]
            if values:
                means[name] = round(sum(values) / len(values), 4)
        return means


def is_taught(talk: TaughtTalk) -> bool:
    """Whether a writer or a strong model said anything of it: votes alone teach little."""
    return talk.is_scene or any(target.kind is not None or target.held is not None for target in talk.targets.values())


def _is_answered(talk: TaughtTalk) -> bool:
    return any(target.held is not None for target in talk.targets.values())


def _sample(talks: Sequence[TaughtTalk], most: int) -> Sequence[TaughtTalk]:
    return talks if len(talks) <= most else random.Random(0).sample(talks, most)


if __name__ == "__main__":
    run_command(teach)
