"""`tactful flags` over many bags that another program wrote: tables, and interruption."""

import csv
import json
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from norm_core.bags.reader import BagReader
from sim_replays.flag_runs import BagFlags
from tactful_cli.flag_watch import BagWatch
from tests.acceptance.conversation_bag import Said, robot, user, write_talk
from tests.acceptance.test_flags import flags, run

SLOW: list[Said] = [
    user(1, 3, "Where can I buy a ticket?"),
    robot(3.5, 6, "You can buy it at the counter."),
    user(8, 10, "And where is the toilet?"),
    robot(18, 20, "It is upstairs on the left."),
    user(22, 24, "Thank you, goodbye."),
    robot(24.5, 26, "Goodbye, enjoy your visit."),
]
SLOW_AT_FIRST: list[Said] = [
    user(1, 3, "Where can I buy a ticket?"),
    robot(13, 15, "You can buy it at the counter."),
    user(17, 19, "And where is the toilet?"),
    robot(19.5, 21.5, "It is upstairs on the left."),
    user(23, 25, "Thank you, goodbye."),
    robot(25.5, 27, "Goodbye, enjoy your visit."),
]

# Late answers alone are too unsure for the default.
KEEN = ("--sensitivity", "keen")


@pytest.fixture(scope="module")
def bags(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three bags, one of them deeper than the others."""
    folder = tmp_path_factory.mktemp("bags")
    write_talk(folder / "session_2", SLOW, 30)
    write_talk(folder / "session_10", SLOW_AT_FIRST, 30)
    (folder / "pilot").mkdir()
    write_talk(folder / "pilot" / "talk", SLOW[:2], 10)
    return folder


def results(*arguments: object) -> list[dict[str, Any]]:
    done = run(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def rows(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8-sig", newline="") as lines:
        return list(csv.DictReader(lines))


def test_each_of_many_bags_has_the_flags_it_has_alone(bags: Path, tmp_path: Path) -> None:
    found = results(bags, "--out", tmp_path / "run", *KEEN)
    assert [one["bag"] for one in found] == ["pilot/talk", "session_2", "session_10"]
    assert found[1]["flags"] == flags(bags / "session_2", *KEEN)
    listed = rows(tmp_path / "run" / "flags.csv")
    late = next(row for row in listed if row["session"] == "session_2" and row["polarity"] == "error")
    assert (float(late["start_s"]), late["severity"]) == (10.0, "major")
    assert {(row["session"], row["event_id"]) for row in listed} == {
        (one["bag"], flag["event_id"]) for one in found for flag in one["flags"]
    }
    counted = {row["bag"]: int(row["errors"]) for row in rows(tmp_path / "run" / "bags.csv")}
    assert counted["session_2"] == sum(flag["polarity"] == "error" for flag in found[1]["flags"])


def test_a_damaged_bag_does_not_keep_the_others_from_being_run(bags: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    shutil.copytree(bags / "session_2", damaged)
    storage = next(damaged.glob("*.mcap"))
    storage.write_bytes(storage.read_bytes()[:3000])
    done = run(damaged, bags / "pilot" / "talk", "--summary")
    assert done.returncode == 1
    assert "damaged: not run" in done.stderr
    assert "all 2" in done.stdout
    assert "1 bag not run" in done.stdout


def test_an_interrupted_run_goes_on_where_it_was(bags: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = BagWatch._watch  # noqa: SLF001 - the interruption comes within a bag

    def interrupted(self: BagWatch, name: str, bag: BagReader) -> BagFlags:
        result = watch(self, name, bag)
        if self.results:  # as Ctrl-C, while the second bag runs: after it a fast machine would be done
            signal.raise_signal(signal.SIGINT)
        return result

    with monkeypatch.context() as patch:
        patch.setattr(BagWatch, "_watch", interrupted)
        done = run(bags, "--summary", "--out", tmp_path / "run")
    assert done.returncode == 130
    assert "1 of 3 bags are done; the same command goes on" in done.stderr
    assert len(rows(tmp_path / "run" / "bags.csv")) == 1
    found = results(bags, "--out", tmp_path / "run")
    assert found == results(bags)
    assert len((tmp_path / "run" / "raw.jsonl").read_text().splitlines()) == 3  # none was run twice


def test_a_run_goes_on_only_with_its_own_settings(bags: Path, tmp_path: Path) -> None:
    results(bags / "pilot", "--out", tmp_path / "run")
    refused = run(bags, "--out", tmp_path / "run", "--sensitivity", "quiet")
    assert refused.returncode == 2
    assert "'balanced' and not 'quiet'" in refused.stderr
