"""A suite as one object, how its replies are read, and the suites by name."""

import difflib
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import cache
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Literal

from norm_core.engines.options import OPTION_LETTERS as LETTERS
from norm_core.engines.options import read_option, strip_reasoning
from norm_core.records.episode import Query
from norm_core.records.json_codec import sha256_of
from norm_core.records.record import record
from scoring.figures import Figures
from sim_replays.items.run_config import Frames, RunConfig, RunItems
from sim_replays.items.target import Predictions, SuiteError, Target

OURS = ("egogapbench", "egonormia", "videonorms", "hsri")
SUITE_FILE = "suite.py"  # makes a folder a suite
INTERVAL_LABEL = "95 % interval"

# Words that deny what stands after them, or before them.
_DENIAL_BEFORE = re.compile(
    r"\b(?:not?|never|neither|nor|except|but|exclud\w+|reject\w*|rul\w+ out|rather than|instead of)\b"
    r"|n['’]t\b|[不未没非除]",
    re.IGNORECASE,
)
_DENIAL_AFTER = re.compile(
    r"\W*(?:(?:is|are|was|does|do|seems?) )?(?:not?|wrong|incorrect|out|excluded|不)\b", re.IGNORECASE
)
_NUMBER_ALONE = r"\(?\d+\)?\.?"
_NUMBER_LIST = re.compile(r"\[\s*(?:\d+(?:\s*,\s*\d+)*)?\s*,?\s*\]")


@record
class ParsedReply:
    """The answer in a reply: indices of the offered options, or text. `is_strict`: the reply has the asked form."""

    chosen: tuple[int, ...] = ()
    text: str = ""
    is_strict: bool = True


# Returns None if a reply names no answer, or several where one is asked for.
ReplyParser = Callable[[Query, str], ParsedReply | None]


def read_json_letter(query: Query, reply: str) -> ParsedReply | None:
    """Read `{"answer": "B", ...}`."""
    visible = strip_reasoning(reply)
    fields = read_json_object(reply)
    answer = fields.get("answer") if fields else visible
    if not fields and visible.count('"answer"') > 1:
        return None
    if not isinstance(answer, str):
        return None
    index = read_option(answer, query.options)
    if index is None:
        return None
    after_object = visible.rpartition("}")[2] if fields else ""
    if re.search(rf"(?<![\w'’])[{LETTERS[: len(query.options)]}](?![\w'’])", after_object):
        return None  # it goes on to speak of an option
    is_whole = visible.startswith("{") and visible.endswith("}")
    return ParsedReply(chosen=(index,), is_strict=fields is not None and len(answer) == 1 and is_whole)


def read_letter(query: Query, reply: str) -> ParsedReply | None:
    """Read one lettered option, such as `(B)`, or its words."""
    index = read_option(reply, query.options)
    if index is None:
        return None
    is_strict = strip_reasoning(reply).strip(" ().") in {LETTERS[index], query.options[index]}
    return ParsedReply(chosen=(index,), is_strict=is_strict)


def read_letters(query: Query, reply: str) -> ParsedReply | None:
    """Read one or more lettered options, such as `(A), (C)`; options named in words count too."""
    visible = strip_reasoning(reply)
    letters = LETTERS[: len(query.options)]
    if re.fullmatch(rf"\(?[{letters}]\)?(?:(?:,| and|,? +)+ *\(?[{letters}]\)?)*\.?", visible):
        return ParsedReply(chosen=tuple(sorted({letters.index(name) for name in re.findall(rf"[{letters}]", visible)})))
    named = list(re.finditer(rf"\((?P<inside>[{letters}])\)|^\W*(?P<first>[{letters}])[).:]", visible, re.MULTILINE))
    indices = {letters.index(match["inside"] or match["first"]) for match in named}
    for index, option in enumerate(query.options):
        if words := re.search(re.escape(option), visible, re.IGNORECASE):
            named.append(words)
            indices.add(index)
    if any(_is_denied(visible, match) for match in named):
        return None
    return ParsedReply(chosen=tuple(sorted(indices)), is_strict=False) if indices else None


def _is_denied(text: str, match: re.Match[str]) -> bool:
    """Return whether a text denies what it names here."""
    return bool(_DENIAL_BEFORE.search(text, 0, match.start()) or _DENIAL_AFTER.match(text, match.end()))


def read_number(query: Query, reply: str) -> ParsedReply | None:
    """Read the number on the last line, after any reasoning, or the words of one option there."""
    options = query.justifications or query.options
    *earlier_lines, line = (part.strip() for part in strip_reasoning(reply).split("\n"))
    numbers = list(re.finditer(r"(?<![\d.-])\d+(?![\d.]*\d)", line))
    if len(numbers) != 1:
        index = None if numbers else read_option(line, options)
        return None if index is None else ParsedReply(chosen=(index,), is_strict=False)
    index = int(numbers[0].group()) - 1
    if not 0 <= index < len(options):
        return None
    is_strict = re.fullmatch(_NUMBER_ALONE, line) is not None
    is_second = any(re.fullmatch(_NUMBER_ALONE, part) for part in earlier_lines)
    if not is_strict and (is_second or _is_denied(line, numbers[0])):
        return None
    return ParsedReply(chosen=(index,), is_strict=is_strict)


def read_number_list(query: Query, reply: str) -> ParsedReply | None:
    """Read a list of numbers at the end, such as `[1, 4]`, after any reasoning."""
    visible = strip_reasoning(reply)
    line = visible.rpartition("\n")[2].strip()
    matches = list(_NUMBER_LIST.finditer(visible))
    bracketed = [match.group() for match in matches]
    is_strict = bool(bracketed) and line == bracketed[-1]
    if bracketed and not is_strict and (len(set(bracketed)) > 1 or _is_denied(visible, matches[-1])):
        return None
    unbracketed = re.fullmatch(r"\d+(?:\s*(?:,|and)\s*\d+)*\.?", line)
    if not bracketed and not unbracketed:
        return None
    listing = bracketed[-1] if bracketed else line
    indices = {int(number) - 1 for number in re.findall(r"\d+", listing)}
    if not indices <= set(range(len(query.options))):
        return None
    return ParsedReply(chosen=tuple(sorted(indices)), is_strict=is_strict)


# By the style of a query whose text is a whole prompt.
REPLY_PARSERS: Mapping[str, ReplyParser] = {
    "json_letter": read_json_letter,
    "letter": read_letter,
    "letters": read_letters,
    "number": read_number,
    "number_list": read_number_list,
}


def read_json_object(reply: str) -> dict[str, Any] | None:
    """Return the one JSON object in a reply; None for several that differ, or a key that stands there twice."""
    visible = strip_reasoning(reply)
    objects: list[dict[str, Any]] = []
    decoder = json.JSONDecoder(object_pairs_hook=_merge_unique_keys)
    start = visible.find("{")
    while start >= 0:
        try:
            value, end = decoder.raw_decode(visible, start)
        except RecursionError:
            return None
        except ValueError:
            end = start + 1
        else:
            if isinstance(value, dict) and value not in objects:
                objects.append(value)
        start = visible.find("{", end)
    return objects[0] if len(objects) == 1 else None


def _merge_unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any] | None:
    fields = dict(pairs)
    return fields if len(fields) == len(pairs) else None


@record
class KnownAnswer:
    """Data, a file of predictions on it, and the figures that the scorer of the suite must give, in percent."""

    data: Path
    predictions: Path
    figures: Mapping[str, float]


Control = Callable[["Suite", Sequence[Target]], Figures]


@record
class Suite:
    """One benchmark: how to read its data, make its questions, read replies, and score the answers.

    - `columns` are the figures of its table, the headline first. `read_targets` reads a path, by the style of prompt.
    - `make_items` makes the episodes of a run. In a bare run each query carries the whole prompt as `question`. Its
      `style` names one of `reply_parsers`. A reply that is not understood is asked for `max_tries` times.
    - `bare_settings` are those in which a paper asks a model alone, its main one first.
    - `joint_tasks` has figures that count an item as right only if it is right in each of several tasks.
    - `oracle_texts` says for a setting which text comes from the dataset in place of perception.
    - `answered_by` is the node of the robot. `emotion_tasks` may show pictures only where the deployment context
      allows it.
    - `published` is a YAML file of the paper's tables. `paper_frames` is how many pictures of a clip the paper shows,
      and `paper_form` how.
    - `known_answer` checks the scorer before each run. `source` is the file of a suite from a folder.
    """

    name: str
    tasks: tuple[str, ...]
    columns: tuple[str, ...]
    settings: tuple[str, ...]
    read_targets: Callable[[Path, str], list[Target]]
    make_items: Callable[[RunConfig], RunItems]
    compute_figures: Callable[[Sequence[Target], Predictions], Figures]
    controls: Mapping[str, Control]
    answered_by: Literal["selector", "judge"] = "selector"
    bare_settings: tuple[str, ...] = ()
    reply_parsers: Mapping[str, ReplyParser] = field(default_factory=lambda: REPLY_PARSERS)
    max_tries: int = 1
    oracle_texts: Mapping[str, str] = field(default_factory=dict)
    emotion_tasks: tuple[str, ...] = ()
    joint_tasks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    interval_label: str = INTERVAL_LABEL  # the heading beside a figure
    paper_frames: int = 0
    paper_form: Frames = "discrete"
    published: Path | None = None
    known_answer: KnownAnswer | None = None
    source: Path | None = None


@cache
def load_suites() -> Mapping[str, Suite]:
    """Load our own suites, by name."""
    return {name: import_module(f"sim_replays.suites.{name}").SUITE for name in OURS}


def find_suite(name: str) -> Suite:
    """Return a suite: one of ours, or that of a folder with `suite.py`."""
    if name in load_suites():
        return load_suites()[name]
    if Path(name).is_dir():
        return _load_folder(Path(name).resolve())
    matches = difflib.get_close_matches(name, load_suites(), n=1)
    hint = f"did you mean {matches[0]}? " if matches else ""
    raise SuiteError(
        f"there is no suite {name!r}; {hint}the suites are {', '.join(load_suites())}, or a folder with {SUITE_FILE}"
    )


@cache
def _load_folder(folder: Path) -> Suite:
    path = folder / SUITE_FILE
    if not path.is_file():
        raise SuiteError(f"{folder}: has no {SUITE_FILE}, which makes a folder a suite; see docs/reference/suites.md")
    spec = spec_from_file_location(f"tactful_suite_{sha256_of(str(folder))[:12]}", path)
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return replace(_check_suite(getattr(module, "SUITE", None), str(path)), source=path)


def _check_suite(suite: object, where: str) -> Suite:
    """Return somebody else's suite, whose scorer is then checked for missing and impossible figures."""
    if not isinstance(suite, Suite):
        raise SuiteError(f"{where}: has {type(suite).__name__} as SUITE; make it a Suite")
    columns = suite.columns

    def compute_figures(targets: Sequence[Target], predictions: Predictions) -> Figures:
        figures = suite.compute_figures(targets, predictions)
        if missing := [name for name in columns if name not in figures]:
            raise SuiteError(f"{where}: its scorer gives no figure {', '.join(missing)}, which `columns` names; add it")
        for name, figure in figures.items():
            if figure.count and figure.unit == "%" and not 0 <= figure.value <= 100:
                raise SuiteError(f"{where}: its scorer gives {name} {figure.value:g} %; a share is at most 100 %")
        return figures

    return replace(suite, compute_figures=compute_figures)


def make_suite_items(run_config: RunConfig) -> RunItems:
    """Make the items of a run."""
    suite = find_suite(run_config.suite)
    if run_config.setting not in suite.settings:
        raise SuiteError(f"there is no setting {run_config.setting!r}; the settings are {', '.join(suite.settings)}")
    items = suite.make_items(run_config)
    return replace(items, files=(*items.files, suite.source)) if suite.source else items
