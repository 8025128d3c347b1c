"""Readers of public corpora of talk with machines that carry people's verdicts, as published.

docs/reference/talk_corpora.md has a card of each. None holds a talk that is kept
unseen: the evaluation part of DBDC3, ConTurE, USS-CCPE, ABC-Eval, and participants 9 to 16 of CD-HRI.
"""

import difflib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from calibration.talk_verdicts.talk_file import Talk, TalkError, TalkTurn, Votes
from norm_core.records.json_codec import sha256_of
from norm_core.records.record import record
from norm_core.runtime.config import ConfigError

_NONE, _BREAKDOWN = Votes(no_breakdown=1), Votes(breakdown=1)


@record
class PublicCorpus:
    """Where a corpus is published, the files of it that are read, and how."""

    repository: str
    files: tuple[str, ...]  # patterns below its folder
    read: Callable[[Path], Iterator[Talk]]


def import_corpus(name: str, folder: Path) -> list[Talk]:
    """Read a corpus from its folder. Raises TalkError where a file is missing or differs from what was published."""
    if name not in CORPORA:
        close = difflib.get_close_matches(name, CORPORA, n=1)
        hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(CORPORA)}"
        raise TalkError(f"--corpus: unknown corpus {name!r}; {hint}")
    corpus = CORPORA[name]
    talks: list[Talk] = []
    for pattern in corpus.files:
        paths = sorted(folder.rglob(pattern))
        if not paths:
            raise TalkError(f"{folder}: holds no {pattern}; fetch github.com/{corpus.repository}, and name its folder")
        for path in paths:
            try:
                if not (own := list(corpus.read(path))):
                    raise ValueError("no judged turn")
                talks += own
            except (OSError, LookupError, ValueError, TypeError, AttributeError, ConfigError) as error:
                raise TalkError(
                    f"{path}: differs from {name} as published ({error!r:.200}); "
                    f"fetch github.com/{corpus.repository} anew"
                ) from error
    return talks


def _reply(  # noqa: PLR0917
    corpus: str,
    number: object,
    context: Iterable[str],
    reply: str,
    verdict: Votes | tuple[float, ...],
    group: str = "",
) -> Talk:
    """Return a talk that ends with the judged reply to a person; before it, person and machine take turns."""
    texts = [text.strip() for text in context if text.strip()]
    people = [len(texts) - place for place in range(len(texts))]
    turns = [
        TalkTurn(by="person" if far % 2 else "machine", text=text) for far, text in zip(people, texts, strict=True)
    ]
    kind = {"votes": verdict} if isinstance(verdict, Votes) else {"rating": verdict}
    turns.append(TalkTurn.model_validate({"by": "machine", "text": reply, **kind}))
    return Talk(id=f"{corpus}/{number}", corpus=corpus, group=group and f"{corpus}/{group}", turns=tuple(turns))


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _key(*texts: str) -> str:
    return sha256_of(texts)[:16]


def _cdconv(path: Path) -> Iterator[Talk]:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        row = json.loads(line)
        context = [row["u1"], row["b1"], row["u2"]]
        yield _reply("cdconv", number, context, row["b2"], _BREAKDOWN if row["label"] else _NONE, _key(row["u1"]))


def _convai2(path: Path) -> Iterator[Talk]:
    by_score = {0: _BREAKDOWN, 1: _NONE}
    for number, row in enumerate(_json(path), 1):
        turns = tuple(
            TalkTurn(by="machine", text=turn["text"], votes=by_score.get(turn["evaluation_score"]))
            if turn["sender_class"] == "Bot"
            else TalkTurn(by="person", text=turn["text"])
            for turn in row["dialog"]
        )
        if any(turn.votes for turn in turns):
            yield Talk(id=f"convai2/{path.stem}-{number}", corpus="convai2", turns=turns)


def _diasafety(path: Path) -> Iterator[Talk]:
    for number, row in enumerate(_json(path), 1):
        verdict = {"Safe": _NONE, "Unsafe": _BREAKDOWN}[row["label"]]
        group = _key(row["context"])
        yield _reply("diasafety", f"{path.stem}-{number}", [row["context"]], row["response"], verdict, group)


_DICES_TURN = re.compile(r"^(?:A|B|USER|LAMDA): ", re.MULTILINE)


def _dices(path: Path) -> Iterator[Talk]:
    corpus = "dices-990" if "990" in path.stem else "dices-350"
    for row in _json(path)["instances"]:
        context = _DICES_TURN.split(row["instance"]["user_prompt"].replace("\\n", "\n"))
        labels = row["annotations"]["safety"]["individual_human_scores"]  # whether the reply is unsafe
        votes = Votes(
            no_breakdown=labels.count("No"), possible_breakdown=labels.count("Unsure"), breakdown=labels.count("Yes")
        )
        yield _reply(corpus, row["id"], context, row["instance"]["response"], votes)


CORPORA = {
    "cdconv": PublicCorpus(repository="thu-coai/CDConv", files=("cdconv.txt",), read=_cdconv),
    "convai2": PublicCorpus(
        repository="DeepPavlovAdmin/convai", files=("data_volunteers.json", "data_intermediate.json"), read=_convai2
    ),
    "diasafety": PublicCorpus(
        repository="thu-coai/DiaSafety", files=("train.json", "val.json", "test.json"), read=_diasafety
    ),
    "dices": PublicCorpus(
        repository="dmg-illc/JUDGE-BENCH", files=("dices_990.json", "dices_350_crowdsourced.json"), read=_dices
    ),
}
