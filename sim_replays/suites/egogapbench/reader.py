"""Read EgoGapBench's items and, separately, their labels."""

from enum import StrEnum
from pathlib import Path
from typing import Any

from action_selector.prompts import STYLES
from norm_core.records.decision import Duplicable, OtherAgent
from norm_core.records.record import record
from sim_replays.suites.dataset_files import entries
from sim_replays.suites.target import SuiteError, Target

TASK = "eas"


SUFFIX = ".bundles.jsonl"


class EgoGapSetting(StrEnum):
    """The input besides the options."""

    BLIND = "blind"
    CAPTIONS = "captions"
    OTHERS = "others-given"
    OTHERS_CAPTIONS = "others-and-captions"
    SWAPPED = "others-swapped"  # other agents from another image
    IMAGES = "images"


class EgoGapKind(StrEnum):
    """The kind of an option. motor_* are actions of visible others; unlabelled is any unknown kind."""

    CORRECT = "correct"
    MOTOR_A = "motor_a"
    MOTOR_B = "motor_b"
    OFF_VANTAGE = "composition_off"
    UNKNOWN = "unlabelled"


@record
class EgoGapItem:
    """One question without its answer. `others` is the output of perfect perception."""

    uid: str
    image: str
    file_name: str
    captions: tuple[str, ...]
    others: tuple[OtherAgent, ...]
    options: tuple[str, ...]
    prompt: str


@record
class EgoGapLabel:
    """The answer to an item, and the kind of each option."""

    uid: str
    image: str
    correct: int
    kinds: tuple[EgoGapKind, ...]
    direct: bool
    letters: tuple[str, ...] = ("A", "B", "C", "D")

    @property
    def target(self) -> Target:
        """Convert to the target type of all scorers."""
        return Target(
            id=self.uid,
            task=TASK,
            group=self.image,
            options=len(self.kinds),
            right=(self.correct,),
            words=self.letters[: len(self.kinds)],
            kinds=self.kinds,
            by={"directness": "direct" if self.direct else "indirect"},
        )


def read(path: Path, style: str = "default") -> tuple[list[EgoGapItem], list[EgoGapLabel]]:
    """Read items and, separately, their labels, from a file or from a folder's files of a style."""
    pairs: dict[str, tuple[EgoGapItem, EgoGapLabel]] = {}
    for file in files(path, style):
        for where, bundle in entries(file):
            try:
                found = [_pair(bundle, entry) for entry in bundle["mcq_items"]]
            except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
                raise SuiteError(
                    f"{where}: is no bundle of EgoGapBench: {type(error).__name__}: {error}; correct or remove it"
                ) from error
            for item, label in found:
                if item.uid in pairs:
                    raise SuiteError(f"{where}: the item {item.uid} stands in {path} twice; remove one")
                pairs[item.uid] = item, label
    if not pairs:
        raise SuiteError(f"{path}: holds no items of EgoGapBench; name the file or folder of its data")
    return [item for item, _ in pairs.values()], [label for _, label in pairs.values()]


def files(path: Path, style: str = "default") -> list[Path]:
    """List the files of a path. In a folder, those whose names contain the style, or the only one."""
    if style not in STYLES:
        raise SuiteError(f"there is no style {style!r}; name one of {', '.join(STYLES)}")
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise SuiteError(f"{path}: there is no such file or folder; check the path")
    found = sorted(path.glob(f"*{SUFFIX}")) or sorted(path.glob("*.json*"))
    worded = "egoplan" if style == "egoplan" else "default"
    chosen = [file for file in found if worded in file.name] or (found if len(found) == 1 else [])
    if not chosen:
        names = ", ".join(file.name for file in found) or "none"
        raise SuiteError(f"{path}: has no file *{worded}*{SUFFIX}; of such files it has {names}: name the file itself")
    return chosen


def _pair(bundle: dict[str, Any], entry: dict[str, Any]) -> tuple[EgoGapItem, EgoGapLabel]:
    letters = sorted(entry["options"])
    image = str(bundle["image_id"])
    item = EgoGapItem(
        uid=str(entry["uid"]),
        image=image,
        file_name=bundle.get("file_name") or "",
        captions=tuple(bundle.get("captions") or ()),
        others=tuple(_other(name, agent) for name, agent in sorted((bundle.get("agents") or {}).items())),
        options=tuple(entry["options"][letter] for letter in letters),
        prompt=entry.get("eval_prompt") or "",
    )
    kinds = entry.get("option_labels") or {}
    label = EgoGapLabel(
        uid=item.uid,
        image=image,
        correct=letters.index(entry["correct_letter"]),
        kinds=tuple(_kind(kinds.get(letter), letter == entry["correct_letter"]) for letter in letters),
        direct=entry.get("cand_kind") == "direct",
        letters=tuple(letters),
    )
    return item, label


def _other(name: str, agent: dict[str, Any]) -> OtherAgent:
    return OtherAgent(
        agent_id=name,
        role=agent.get("role") or "",
        appearance=agent.get("appearance") or "",
        doing=agent.get("engagement") or "",
        duplicable=Duplicable.NO if "single" in (agent.get("singleton_type") or "") else Duplicable.UNKNOWN,
    )


def _kind(name: str | None, right: bool) -> EgoGapKind:
    """Find the kind of an option. The right letter comes first, because the figures depend on it."""
    if right:
        return EgoGapKind.CORRECT
    return EgoGapKind(name) if name in set(EgoGapKind) - {EgoGapKind.CORRECT} else EgoGapKind.UNKNOWN
