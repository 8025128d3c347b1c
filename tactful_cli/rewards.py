"""`tactful rewards`: turn sessions into scores, preference pairs and a study's outcome."""

import json
from collections import Counter
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from norm_core import __version__
from norm_core.bags.reader import BagReader
from norm_core.records.json_codec import sha256_of, to_json, to_plain
from norm_core.runtime.atomic_file import write_atomic
from norm_core.runtime.data_files import shipped_text
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.watermarks import UTTERANCES
from norm_core.runtime.wording import count_of, in_words
from sim_replays.flag_runs import bag_digest, find_bags
from sim_replays.rewards import RewardedTurn, SessionRewards, grouped, logged_records, preference_pairs, rewards_of
from sim_replays.runs.results.json_lines import append_lines, drop_cut_line, read_lines
from study_desk.log.reader import is_log
from study_desk.log.recording import Recording, open_recording
from study_desk.study.study_folder import Study, is_study, study_of
from tactful_cli.console import complain, err, out, print_json, print_table
from tactful_cli.flag_watch import FlagOptions, shipped_parts
from tactful_cli.verb import AsJson, RobotTopics, WordsTopics, single

app = single()
MODE = 0o600  # of what quotes people


class Group(StrEnum):
    """What turns are summed up by."""

    CONDITION = "condition"
    SESSION = "session"
    SOURCE = "source"


@app.command()
def rewards(  # noqa: PLR0917
    sources: Annotated[
        list[Path], typer.Argument(metavar="SESSION|BAG", help="Study logs, studies, bags, or folders with bags.")
    ],
    file: Annotated[Path, typer.Option("--out", metavar="FILE", help="JSON Lines, one robot turn each.")],
    pairs: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Preference pairs as trl reads them: prompt, chosen, rejected."),
    ] = None,
    by: Annotated[Group, typer.Option(help="What the table sums up.")] = Group.CONDITION,
    robot_topic: RobotTopics = None,
    words_topic: WordsTopics = None,
    as_json: AsJson = False,
) -> None:
    """Score what a robot said in sessions, as rewards for its policy, with a card beside them.

    Turns with words of people who did not consent, or withdrew, stay out. After an interruption, the same command goes
    on.
    """
    options = FlagOptions(robot_topics=tuple(robot_topic or ()), words_topics=tuple(words_topic or ()))
    part = file.with_name(f".{file.name}.{__version__}.sessions")
    made: list[SessionRewards] = []
    drop_cut_line(part)
    part.touch(mode=MODE)
    done = {one.made_of: one for one in read_lines(part, SessionRewards)}
    jobs = list(_jobs(sources))
    with err.status("reading") as progress:
        for number, (name, recording, bag) in enumerate(jobs, start=1):
            progress.update(f"{number} of {count_of(len(jobs), 'session')}: {name}")
            made.append(_made(name, recording, bag, options, done))
            if made[-1].made_of not in done:
                append_lines(part, made[-1:])
    turns = [turn for one in made for turn in one.turns]
    chosen = list(preference_pairs(turns))
    write_atomic(file, "".join(to_json(turn) + "\n" for turn in turns), mode=MODE)
    left_out = sum((Counter(one.left_out) for one in made), Counter[str]())
    write_atomic(file.with_name(f"{file.name}.card.md"), _card(file.name, len(made), turns, left_out, len(chosen)))
    if pairs:
        write_atomic(pairs, "".join(json.dumps(pair, ensure_ascii=False) + "\n" for pair in chosen), mode=MODE)
    part.unlink()
    rows = grouped(turns, by.value)
    if as_json:
        print_json({"groups": rows, "left_out": left_out, "pairs": len(chosen)})
        return
    table = Table(*(in_words(name) for name in rows[0])) if rows else Table("nothing")
    for row in rows:
        table.add_row(*map(str, row.values()))
    print_table(table)
    out.print(
        f"{count_of(len(turns), 'turn')} in {file}, and how far to trust them in {file.name}.card.md", markup=False
    )
    for reason, count in left_out.items():
        complain(f"rewards: {count_of(count, 'turn')} left out: {reason}")


def _jobs(sources: list[Path]) -> Iterator[tuple[str, Recording | None, Path | None]]:
    """Yield each session's name with its log, or with its bag where there is none."""
    for source in sources:
        if is_study(source):
            recordings, remarks = Study(source).recordings()
            for remark in remarks:
                complain(f"{source.name}: {remark}")
            yield from ((f"{source.name}/{name}", recording, None) for name, recording in recordings.items())
        elif is_log(source):
            of_study = study_of(source)
            recording = of_study[0].recording_of(of_study[1]) if of_study else open_recording(source)
            if recording.missing:
                complain(f"{source}: {recording.missing}, so is left out")
            else:
                yield str(source), recording, None
        else:
            for name, bag in find_bags([source]).items():
                if study_of(bag):
                    raise TactfulError(
                        f"{bag}: belongs to a study, whose consents its log knows; name the session's log"
                    )
                yield name, None, bag


def _made(
    name: str, recording: Recording | None, bag: Path | None, options: FlagOptions, done: dict[str, SessionRewards]
) -> SessionRewards:
    if recording:
        made_of = sha256_of([options.settings(), recording.head, to_plain(recording.info)])
        info = recording.info
        return done.get(made_of) or rewards_of(
            logged_records(recording), (UTTERANCES,), name, info.session, made_of, recording, info.condition
        )
    assert bag
    with BagReader(bag) as reader:
        made_of = sha256_of([options.settings(), bag_digest(reader), name])
        if made_of in done:
            return done[made_of]
        senses = options.senses(reader, name)
        return rewards_of(senses.records(), senses.sources, name, bag.name, made_of)


def _card(name: str, sessions: int, turns: list[RewardedTurn], left_out: Counter[str], pairs: int) -> str:
    model, _, matcher = shipped_parts()
    return shipped_text("sim_replays", "rewards_card.md").format(
        name=name,
        turns=len(turns),
        sessions=sessions,
        left_out=", ".join(f"{count} ({reason})" for reason, count in left_out.items()) or "none",
        confirmed=sum(turn.confirmed is True for turn in turns),
        rejected=sum(turn.confirmed is False for turn in turns),
        pairs=pairs,
        version=__version__,
        weights=model.sha256()[:12],
        read_by="sentences and a talk reader" if matcher.reader_size else "sentences",
        program=PROGRAM,
    )
