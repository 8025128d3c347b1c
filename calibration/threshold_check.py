"""Check thresholds on shipped encounters: fit them without each writer, and count what they flag in that writer's.

Run: python -m calibration.threshold_check EACH TARGET WHY, with so many encounters of each writer, for a target in
false errors an hour. The shipped unit weights were fitted on these encounters, so recall is too high.
"""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import date

from calibration.leave_one_writer_out import Source, shipped_sources
from calibration.looks import add_looks
from calibration.session_flags import Bars, LabelledError, LabelledSession, RaisedError, count_session, total
from calibration.threshold_fit import ThresholdTarget, fit_thresholds
from norm_core.records.flag import FlagState, Polarity, SocialFlag
from norm_core.runtime.time import NS_PER_S, ReplayClock
from norm_core.runtime.watermarks import UTTERANCES
from norm_monitor.context.meaning import EncoderMatcher
from norm_monitor.cues.threshold_table import ThresholdTable
from norm_monitor.fusion.fusion import FusionConfig
from norm_monitor.fusion.unit_model import Sensitivity, shipped_unit_model
from norm_monitor.monitor import Monitor, MonitorConfig
from sim_replays.drivers.script_driver import records_of_script
from sim_replays.scenarios.library import HERE

# Every error from this probability on is raised, so that any threshold above it can be tried.
EVERYTHING = FusionConfig(bars=("error=0.01",), most_per_attribute=1000)


def main(each: int, target: ThresholdTarget, why: str) -> None:
    """Print what thresholds fitted without each writer flag in that writer's encounters, and log the look."""
    sessions = dict(_sessions(each))
    writers = sorted({writer for _, writer in sessions})
    before = Bars(rest=shipped_unit_model().operating_points[Sensitivity.BALANCED].error)
    after, usual, held = [], [], 0
    for left_out in writers:
        fit = fit_thresholds([one for (_, writer), one in sessions.items() if writer != left_out], target, before)
        own = [one for (_, writer), one in sessions.items() if writer == left_out]
        usual += [count_session(one, before) for one in own]
        if fit.chosen:
            counts = [count_session(one, fit.chosen.bars) for one in own]
            false, _, _, hours = total(counts)
            held += false / hours <= target.limit
            after += counts
    for name, counts in (("balanced, as shipped", usual), (f"fitted to {target}", after)):
        if counts:
            false, right, labelled, hours = total(counts)
            print(f"{name}: {false} false in {hours:.2f} h, {false / hours:.1f} an hour; {right} of {labelled} errors")
    print(f"{len(sessions)} encounters; {held} of {len(writers)} writers left out are within the target")
    done = subprocess.run(
        ["git", "-C", str(HERE), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    row = {"date": date.today().isoformat(), "commit": done.stdout.strip(), "source": "script", "language": "en"}
    add_looks([{**row, "material": "known writers", "encounters": len(sessions), "why": why}])


def _sessions(each: int) -> Iterator[tuple[tuple[str, str], LabelledSession]]:
    meaning, table = EncoderMatcher.shipped(), ThresholdTable.shipped()
    taken: Counter[str] = Counter()
    for source in shipped_sources(("many_hands",)):
        taken[source.writer] += source.encounter.language == "en"
        if source.encounter.language == "en" and taken[source.writer] <= each:
            yield (source.encounter.id, source.writer), _session(source, meaning, table)


def _session(source: Source, meaning: EncoderMatcher, table: ThresholdTable) -> LabelledSession:
    given, truth = records_of_script(source.encounter)
    clock = ReplayClock()
    monitor = Monitor(MonitorConfig.for_replay((UTTERANCES,), fusion=EVERYTHING), table, meaning, clock)
    states: dict[str, SocialFlag] = {}
    for at_ns, entry in given:
        clock.advance_to(max(at_ns, clock.now_ns()))
        states |= {flag.event_id: flag for flag in monitor.take(entry)}
    states |= {flag.event_id: flag for flag in monitor.end_input()}
    flags = [one for one in states.values() if one.state is not FlagState.WITHDRAWN and one.polarity is Polarity.ERROR]
    return LabelledSession(
        name=source.encounter.id,
        hours=(truth.end_ns - truth.start_ns) / NS_PER_S / 3600,
        errors=tuple(
            LabelledError(onset_ns=one.onset_ns, attributes=one.attributes)
            for one in truth.events
            if one.polarity is Polarity.ERROR
        ),
        raised=tuple(
            RaisedError(onset_ns=one.onset_ns, probability=one.probability, attributes=one.attributes) for one in flags
        ),
    )


if __name__ == "__main__":
    main(int(sys.argv[1]), ThresholdTarget(false_errors_per_hour=float(sys.argv[2])), sys.argv[3])
