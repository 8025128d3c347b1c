"""A suite as one object, how its replies are read, and the suites by name."""

import difflib
import json
import re
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import cache, wraps
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar

from norm_core.engines.options import OPTION_LETTERS as LETTERS
from norm_core.engines.options import read_option, strip_reasoning
from norm_core.records.episode import Query
from norm_core.records.json_codec import sha256_of
from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError
from scoring.figures import Figures
from sim_replays.items.run_config import Frames, RunConfig, RunItems, ids_in, is_named
from sim_replays.items.target import Predictions, SuiteError, Target, first_few

_LIST = re.compile(r"\[\s*(?:\d+(?:\s*,\s*\d+)*)?\s*,?\s*\]")


@record
class Reading:
    """What a reply answers: positions among the offered options, or text. `strict` means that it has the asked form."""

    chosen: tuple[int, ...] = ()
    text: str = ""
    strict: bool = True


# Returns None where a reply names no answer, or several where one is asked for.
Form = Callable[[Query, str], Reading | None]


def json_letter(query: Query, reply: str) -> Reading | None:
    """Read `{"answer": "B", ...}`."""
    answer_text, plain = strip_reasoning(reply), json_object(reply)
    answer = plain.get("answer") if plain else answer_text
    if not plain and answer_text.count('"answer"') > 1:
        return None
    if not isinstance(answer, str):
        return None
    place = read_option(answer, query.options)
    strict = plain is not None and len(answer) == 1 and answer_text.startswith("{") and answer_text.endswith("}")
    return None if place is None else Reading(chosen=(place,), strict=strict)


def letter(query: Query, reply: str) -> Reading | None:
    """Read one lettered option, such as `(B)`, or its words."""
    answer_text, place = strip_reasoning(reply), read_option(reply, query.options)
    if place is None:
        return None
    return Reading(chosen=(place,), strict=answer_text.strip(" ().") in {LETTERS[place], query.options[place]})


def letters(query: Query, reply: str) -> Reading | None:
    """Read one or more lettered options, such as `(A), (C)`; options named in words count too."""
    answer_text, labels = strip_reasoning(reply), LETTERS[: len(query.options)]
    if re.fullmatch(rf"\(?[{labels}]\)?(?:(?:,| and|,? +)+ *\(?[{labels}]\)?)*\.?", answer_text):
        return Reading(chosen=tuple(sorted({labels.index(name) for name in re.findall(rf"[{labels}]", answer_text)})))
    named = re.findall(rf"\(([{labels}])\)|^\W*([{labels}])[).:]", answer_text, re.MULTILINE)
    places = {labels.index(first or other) for first, other in named}
    places |= {place for place, option in enumerate(query.options) if option.casefold() in answer_text.casefold()}
    return Reading(chosen=tuple(sorted(places)), strict=False) if places else None


def number(query: Query, reply: str) -> Reading | None:
    """Read the number on the last line, after any reasoning, or the words of one option there."""
    offered = query.justifications or query.options
    line = strip_reasoning(reply).rpartition("\n")[2].strip()
    strict = re.fullmatch(r"\(?(\d+)\)?\.?", line)
    named = re.findall(r"(?<![\d.])\d+(?![\d.]*\d)", line)
    if len(named) != 1:
        place = None if named else read_option(line, offered)
        return None if place is None else Reading(chosen=(place,), strict=False)
    place = int(named[0]) - 1
    return Reading(chosen=(place,), strict=strict is not None) if 0 <= place < len(offered) else None


def number_list(query: Query, reply: str) -> Reading | None:
    """Read a list of numbers at the end, such as `[1, 4]`, after any reasoning."""
    answer_text = strip_reasoning(reply)
    line = answer_text.rpartition("\n")[2].strip()
    bare_list = re.fullmatch(r"\d+(?:\s*(?:,|and)\s*\d+)*\.?", line)
    listings = [*_LIST.finditer(answer_text)][-1:] or ([bare_list] if bare_list else [])
    if len({listing.group() for listing in _LIST.finditer(line)}) > 1:
        return None
    places = {int(name) - 1 for name in re.findall(r"\d+", listings[0].group())} if listings else {-1}
    if not places <= set(range(len(query.options))):
        return None
    return Reading(
        chosen=tuple(sorted(places)), strict=answer_text.endswith("]") and answer_text.endswith(listings[0].group())
    )


FORMS: Mapping[str, Form] = {
    "json_letter": json_letter,
    "letter": letter,
    "letters": letters,
    "number": number,
    "number_list": number_list,
}


def json_object(reply: str) -> dict[str, Any] | None:
    """Return the one JSON object that stands in a reply; None for several that differ, or a key that appears twice."""
    visible, at = strip_reasoning(reply), 0
    objects: list[dict[str, Any]] = []
    while (at := visible.find("{", at)) >= 0:
        try:
            plain, at = json.JSONDecoder(object_pairs_hook=_once).raw_decode(visible, at)
        except RecursionError:
            return None
        except ValueError:
            at += 1
            continue
        if isinstance(plain, dict) and plain not in objects:
            objects.append(plain)
    return objects[0] if len(objects) == 1 else None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any] | None:
    fields = dict(pairs)
    return fields if len(fields) == len(pairs) else None


P = ParamSpec("P")
R = TypeVar("R")

RANGES = "95 % interval"
ENTRY_POINTS, FILE = "tactful.suites", "suite.py"
OURS = ("egogapbench", "egonormia", "videonorms", "hsri")


@record
class KnownAnswer:
    """Data, a file of predictions on it, and the figures that the suite's scorer has to give, in percent."""

    data: Path
    predictions: Path
    figures: Mapping[str, float]


Control = Callable[["Suite", Sequence[Target]], Figures]


@record
class Suite:
    """One benchmark: how to read its data, make its questions, read replies, and score the answers.

    - `columns` are the figures of its table, the headline first. `read` returns the targets of a path.
    - `items` makes the episodes of a run. In a bare run each query carries the whole prompt as `question`, and as
      `style` the name of one of `forms`, which reads the reply. A reply that is not understood is asked for `tries`
      times. `bare_settings` are those in which a paper asks a model alone, its main one first.
    - `joint` names figures that count an item right only where it is right in each of several tasks.
    - `given` states for a setting what text comes from the dataset in place of perception.
    - `about_emotions` are tasks that may show pictures only where the deployment context allows it.
    - `published` is a YAML file of the paper's tables. `paper_frames` is how many pictures of a clip the paper shows,
      and `paper_form` how.
    - `known` is a known answer, on which the scorer is checked before each run. `source` is the file of a
      suite from a folder.
    """

    name: str
    tasks: tuple[str, ...]
    columns: tuple[str, ...]
    settings: tuple[str, ...]
    read: Callable[[Path, str], list[Target]]
    items: Callable[[RunConfig], RunItems]
    figures: Callable[[Sequence[Target], Predictions], Figures]
    controls: Mapping[str, Control]
    answered_by: Literal["selector", "judge"] = "selector"
    bare_settings: tuple[str, ...] = ()
    forms: Mapping[str, Form] = field(default_factory=lambda: FORMS)
    tries: int = 1
    given: Mapping[str, str] = field(default_factory=dict)
    about_emotions: tuple[str, ...] = ()
    broken_down_by: tuple[str, ...] = ()
    joint: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ranges: str = RANGES  # the text beside a figure
    paper_frames: int = 0
    paper_form: Frames = "discrete"
    published: Path | None = None
    known: KnownAnswer | None = None
    source: Path | None = None


@cache
def suites() -> Mapping[str, Suite]:
    """Load our own suites, by name."""
    return {name: import_module(f"sim_replays.suites.{name}").SUITE for name in OURS}


def suite_called(name: str) -> Suite:
    """Look up a suite: one of ours, one of an installed package, or a folder with `suite.py`.

    Raises an error that lists all suites.
    """
    if name in suites():
        return suites()[name]
    installed = {point.name: point for point in entry_points(group=ENTRY_POINTS)}
    if name in installed:
        try:
            module = find_spec(installed[name].module)
            file = Path(str(module and module.origin))
            return _checked(installed[name].load(), f"{ENTRY_POINTS}: {name}", file)
        except (ImportError, AttributeError) as error:
            raise SuiteError(f"{ENTRY_POINTS}: {name}: cannot be loaded: {error}; fix or remove its package") from error
    if Path(name).is_dir():
        return _of_folder(Path(name).resolve())
    names = [*suites(), *installed]
    close = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    raise SuiteError(f"there is no suite {name!r}; {hint}the suites are {', '.join(names)}, or a folder with {FILE}")


@cache
def _of_folder(folder: Path) -> Suite:
    path = folder / FILE
    if not path.is_file():
        raise SuiteError(f"{folder}: has no {FILE}, which makes a folder a suite; see docs/reference/suites.md")
    spec = spec_from_file_location(f"tactful_suite_{sha256_of(str(folder))[:12]}", path)
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        place = _place_of(error, str(path), folder)
        raise SuiteError(f"{place}: cannot be loaded: {type(error).__name__}: {error}; correct it") from error
    return replace(_checked(getattr(module, "SUITE", None), str(path), folder), source=path)


def _checked(suite: object, where: str, root: Path) -> Suite:
    """Check a suite of somebody else; its own faults then name their line in its folder or file, `root`."""
    if not isinstance(suite, Suite):
        raise SuiteError(f"{where}: should give a Suite named SUITE, and gives {type(suite).__name__}")
    columns = suite.columns

    def figures(targets: Sequence[Target], predictions: Predictions) -> Figures:
        scored = suite.figures(targets, predictions)
        if lacking := [name for name in columns if name not in scored]:
            raise SuiteError(f"{where}: its scorer gives no figure {', '.join(lacking)}, which `columns` names; add it")
        for name, figure in scored.items():
            if figure.count and figure.unit == "%" and not 0 <= figure.value <= 100:
                raise SuiteError(f"{where}: its scorer gives {name} {figure.value:g} %; a share is at most 100 %")
        return scored

    return replace(
        suite,
        read=_with_clear_faults(suite.read, where, root),
        items=_with_clear_faults(suite.items, where, root),
        figures=_with_clear_faults(figures, where, root),
    )


def _place_of(error: Exception, where: str, root: Path) -> str:
    """Name the last file and line under `root` that an error passed through, or `where` if there is none."""
    calls = traceback.extract_tb(error.__traceback__)
    lines = [f"{call.filename}:{call.lineno}" for call in calls if Path(call.filename).is_relative_to(root)]
    return lines[-1] if lines else where


def _with_clear_faults(function: Callable[P, R], where: str, root: Path) -> Callable[P, R]:
    @wraps(function)
    def call(*args: P.args, **named: P.kwargs) -> R:
        try:
            return function(*args, **named)
        except TactfulError:
            raise
        except Exception as error:
            raise SuiteError(
                f"{_place_of(error, where, root)}: {type(error).__name__}: {error}; correct the suite or its data"
            ) from error

    return call


def items_of_suite(asking: RunConfig) -> RunItems:
    """Make the items: the named ones if any are named."""
    suite = suite_called(asking.suite)
    if asking.setting not in suite.settings:
        raise SuiteError(f"there is no setting {asking.setting!r}; the settings are {', '.join(suite.settings)}")
    suite_items = suite.items(asking)
    asked = suite_items.asked
    if asking.only:
        wanted = ids_in(Path(asking.only))
        ids = {item.item or item.id for item in asked}
        if unknown := sorted(wanted - ids - {name.partition("#")[0] for name in ids}):
            raise SuiteError(f"{asking.only}: names ids that are not in {asking.data}: {first_few(unknown)}")
        asked = tuple(item for item in asked if is_named(item.item or item.id, wanted))
    suite_items = suite_items if asked == suite_items.asked else suite_items.of(asked)
    files = [*suite_items.files, *filter(None, (suite.source, Path(asking.only) if asking.only else None))]
    return replace(suite_items, files=tuple(files))
