"""`tactful bag recover` and `tactful bag cut`."""

from dataclasses import asdict
from typing import Annotated

import typer

from norm_core.bags.bag_cut import cut_bag
from norm_core.bags.reader import BagReader
from norm_core.bags.recovery.bag_recovery import recover_bag
from norm_core.bags.recovery.report import BagRecoveryReport
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.time import ns_to_s
from norm_core.runtime.wording import count_of
from tactful_cli.bag.arguments import BagPath, MadePath, progress
from tactful_cli.console import err, print_json
from tactful_cli.verb import AsJson

app = typer.Typer()

EXIT_LOSS = 1
_MAX_SHOWN = 12


@app.command()
def recover(bag: BagPath, made: MadePath, as_json: AsJson = False) -> None:
    """Write a valid bag from a damaged or unfinished one, and report the losses. Exits with 1 if data was lost."""
    with progress("recovering") as tell:
        report = recover_bag(bag, made, tell)
    if as_json:
        print_json(asdict(report) | {"whole": report.is_whole})
    else:
        _show(report)
    if not report.is_whole:
        raise typer.Exit(EXIT_LOSS)


@app.command()
def cut(  # noqa: PLR0917
    bag: BagPath,
    made: MadePath,
    from_: Annotated[
        str, typer.Option("--from", metavar="TIME", help="Seconds after the bag's start, or a stamp in s or ns.")
    ] = "0",
    to: Annotated[
        str, typer.Option(metavar="TIME", help="End, exclusive, in the same form; default: the end of the bag.")
    ] = "",
    topics: Annotated[
        list[str] | None,
        typer.Option(help="Topic to keep; default: all. Repeatable."),
    ] = None,
    latched: Annotated[
        list[str] | None,
        typer.Option(
            help="Topic whose last message before the cut is kept too. /tf_static and transient local topics always "
            "are. Repeatable.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Copy a time range of a bag, or some of its topics, into a new bag."""
    done = 0
    with BagReader(bag) as reader:
        whole = reader.message_count
    with progress("cutting") as tell:

        def step(messages: int) -> None:
            nonlocal done
            done += messages
            tell(done, whole)

        made_cut = cut_bag(bag, made, from_, to, topics=topics or None, latched=latched or (), progress=step)
    if as_json:
        print_json(asdict(made_cut) | {"messages": made_cut.messages})
        return
    print(f"{made}: {count_of(made_cut.messages, 'message')} in {ns_to_s(made_cut.to_ns - made_cut.from_ns):.3f} s")
    for topic, count in made_cut.latched.items():
        print(f"  {topic}: {count} from before the cut, at its beginning")
    if made_cut.dropped_topics:
        shown = ", ".join(made_cut.dropped_topics[:_MAX_SHOWN])
        more = len(made_cut.dropped_topics) - _MAX_SHOWN
        err.print(f"nothing of {shown}{' and ' + count_of(more, 'more topic') if more > 0 else ''}", markup=False)


def _show(report: BagRecoveryReport) -> None:
    first_ns = report.first_ns or 0
    length_s = ns_to_s((report.last_ns or 0) - first_ns)
    print(f"{report.made}: {count_of(report.messages, 'message')} in {length_s:.3f} s")
    for repair in report.repairs:
        print(f"  mended: {repair}")
    for topic, count in report.lost_by_topic.items():
        print(f"  lost: {count} of {topic}")
    if report.lost_by_topic:
        print(f"  (at least; known from {report.lost_known_from})")
    if report.hole_count:
        print(
            f"  {count_of(report.lost_bytes, 'byte')} without a message, "
            f"{count_of(report.chunks_damaged, 'damaged chunk')}"
        )
    for hole in report.holes[:_MAX_SHOWN]:
        print(f"  at byte {hole.offset}: {hole.file} {hole.why}")
    for gap in report.lost_times[:_MAX_SHOWN]:
        after = "the start" if gap.after_ns is None else f"{ns_to_s(gap.after_ns - first_ns):.3f} s"
        before = "the end" if gap.before_ns is None else f"{ns_to_s(gap.before_ns - first_ns):.3f} s"
        print(f"  lost time: between {after} and {before}")
    if report.is_cut:
        print(
            f"  it was cut short: what came after its last message, at {report.last_ns or 0} ns, is missing; "
            f"at most 2 s if {PROGRAM} bag record wrote it"
        )
    print("nothing is known to be lost" if report.is_whole else "something was lost")
