"""`tactful bag recover`: write a valid bag from a damaged one."""

from dataclasses import asdict

import typer

from norm_core.bags.bag_recovery import BagRecoveryReport, recover_bag
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.wording import count_of
from tactful_cli.bag.options import BagPath, NewBagPath
from tactful_cli.console import print_json, show
from tactful_cli.progress import show_progress
from tactful_cli.verb_options import AsJson

_EXIT_LOSS = 1
_MAX_SHOWN_STOPS = 12


def recover(bag: BagPath, out: NewBagPath, as_json: AsJson = False) -> None:
    """Write a valid bag from a damaged or unfinished one, and report the losses. Exits with 1 if data was lost."""
    with show_progress("recovering") as update:
        report = recover_bag(bag, out, update)
    if as_json:
        print_json(asdict(report) | {"cut": report.is_cut, "whole": report.is_whole})
    else:
        _show_report(report)
    if not report.is_whole:
        raise typer.Exit(_EXIT_LOSS)


def _show_report(report: BagRecoveryReport) -> None:
    """Print what was recovered and what was lost."""
    show(f"{report.made}: {count_of(report.messages, 'message')}")
    for topic, count in report.messages_by_topic.items():
        show(f"  {topic}: {count}")
    for note in report.notes:
        show(f"  note: {note}")
    for topic, count in report.lost_by_topic.items():
        show(f"  lost: {count} of {topic}")
    for stop in report.stops[:_MAX_SHOWN_STOPS]:
        show(f"  {stop}")
    if report.is_cut:
        show(
            f"  it was cut short: what came after its last message, at {report.last_ns or 0} ns, is missing; "
            f"at most 2 s if {PROGRAM} bag record wrote it"
        )
    show("nothing is known to be lost" if report.is_whole else "something was lost")
