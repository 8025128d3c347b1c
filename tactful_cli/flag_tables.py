"""Print the flags of bags, their summary, and what changed since an earlier run."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from norm_core.records.flag import Polarity, SocialFlag
from norm_core.records.json_codec import to_plain
from norm_core.runtime.time import ns_to_s
from norm_core.runtime.wording import count_of, in_words
from norm_monitor.fusion.explanation import explain
from sim_replays.flag_runs import BagFlags, Change, FlagChange, error_attributes, errors_per_hour
from tactful_cli.console import err, out, print_table

Changes = Mapping[str, Sequence[FlagChange]]  # by bag
_SHOWN = (Change.CAME, Change.WENT, Change.MOVED, Change.CHANGED)


def show_flag(flag: SocialFlag, start_ns: int, *, explained: bool) -> None:
    """Print one flag like a coder's note."""
    out.print(_line(flag, start_ns))
    for line in explain(flag).splitlines()[1:] if explained else [flag.rationale, *_instead(flag)]:
        out.print(f"          {escape(line)}")


def show_changes(old: BagFlags, new: BagFlags, changes: Iterable[FlagChange]) -> None:
    """Print the flags of one bag that differ between two runs."""
    for change in changes:
        flag = change.new or change.old
        if change.change is Change.SAME or flag is None:
            continue
        line = _line(flag, new.start_ns if change.new else old.start_ns)
        if change.new and change.old:
            before = _times(change.old, old.start_ns)
            judged = "" if change.change is Change.MOVED else f", {_judgement(change.old)}"
            line += f", was {before}{judged}"
        out.print(f"{change.change.value:8}{line}")
        out.print(f"          {escape(flag.rationale)}")


def show_summary(results: Sequence[BagFlags], changes: Changes | None = None) -> None:
    """Print one row a bag and one for all."""
    table = Table("bag", "minutes", "errors", "competences", "errors an hour")
    for change in _SHOWN if changes is not None else ():
        table.add_column(change.value)
    table.add_column("remarks")
    for one in results:
        if one.problem:
            table.add_row(escape(one.bag), *[""] * (len(table.columns) - 2), f"[red]{escape(one.problem)}[/]")
        else:
            remarks = count_of(len(one.remarks), "remark") if one.remarks else ""
            table.add_row(escape(one.bag), *_figures([one]), *_counts([one], changes), remarks)
    failed = sum(bool(one.problem) for one in results)
    total = f"{count_of(failed, 'bag')} not run" if failed else ""
    table.add_section()
    table.add_row(f"all {len(results)}", *_figures(results), *_counts(results, changes), total)
    print_table(table)
    if attributes := error_attributes(results):
        print("errors about " + ", ".join(f"{in_words(name.value)} {count}" for name, count in attributes))


def show_setting_changes(old: Mapping[str, Any], new: Mapping[str, Any], against: Path) -> None:
    """Print the settings that two runs do not share."""
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) != new.get(name):
            err.print(f"{against}: {name} was {old.get(name)}, is {new.get(name)}", markup=False)


def plain_result(result: BagFlags, changes: Changes | None) -> dict[str, Any]:
    """Return a bag's flags for a program, with what changed where a run was named to compare with."""
    plain: dict[str, Any] = to_plain(result)
    if changes is not None:
        plain["changes"] = [to_plain(one) for one in changes.get(result.bag, ()) if one.change is not Change.SAME]
    return plain


def _figures(results: Sequence[BagFlags]) -> tuple[str, ...]:
    rate = errors_per_hour(results)
    errors, competences = sum(len(one.errors) for one in results), sum(one.competences for one in results)
    minutes = sum(one.length_s for one in results) / 60
    return f"{minutes:.1f}", str(errors), str(competences), "" if rate is None else f"{rate:.0f}"


def _counts(results: Sequence[BagFlags], changes: Changes | None) -> tuple[str, ...]:
    if changes is None:
        return ()
    counted = Counter(one.change for result in results for one in changes.get(result.bag, ()))
    return tuple(str(counted[change]) for change in _SHOWN)


def _line(flag: SocialFlag, start_ns: int) -> str:
    return f"[bold]{_times(flag, start_ns, 6)}[/]  {_judgement(flag)}"


def _times(flag: SocialFlag, start_ns: int, width: int = 0) -> str:
    end = " on" if flag.offset_ns is None else f"-{ns_to_s(flag.offset_ns - start_ns):.1f}"
    return f"{ns_to_s(flag.onset_ns - start_ns):{width}.1f}{end} s"


def _judgement(flag: SocialFlag) -> str:
    colour = "red" if flag.polarity is Polarity.ERROR else "green"
    kind = f"{flag.severity} error" if flag.polarity is Polarity.ERROR else "competence"
    return f"[{colour}]{kind}[/]  {', '.join(in_words(attribute.value) for attribute in flag.attributes)}"


def _instead(flag: SocialFlag) -> list[str]:
    return [f"Instead: {flag.correction}"] if flag.correction else []
