"""The monitor's node flags errors by the thresholds of its site, and refuses those of other weights."""

from pathlib import Path

import pytest

from norm_core.records.flag import Attribute, Polarity, SocialFlag
from norm_core.runtime.artefact import write_artefact
from norm_monitor.context.meaning import EncoderMatcher
from norm_monitor.cues.threshold_table import ThresholdTable
from norm_monitor.fusion.site_thresholds import made_with
from norm_monitor.fusion.unit_model import shipped_unit_model
from sim_replays.drivers.node_process import NodeProcess, NodeProcessError
from tests.norm_monitor.fusion.test_site_thresholds import site
from tests.norm_nodes.test_monitor_node import FLAGGED, TALK, flags_in, play
from tests.observer import Observer

pytestmark = pytest.mark.ros


def monitor(domain_id: int, operating_point: Path) -> NodeProcess:
    own = {"windows": {"sources": ["utterances"]}, "fusion": {"operating_point": str(operating_point)}}
    return NodeProcess(["monitor"], {"monitor": own}, domain_id)


def thresholds(path: Path, changed: dict[str, str] | None = None, **by_attribute: float) -> Path:
    """Write an artefact that is fitted to the shipped monitor, but for what is changed."""
    fitted_to = made_with(shipped_unit_model(), ThresholdTable.shipped(), EncoderMatcher.shipped()) | (changed or {})
    write_artefact(site(fitted_to, **(dict.fromkeys(Attribute, 0.3) | by_attribute)), path)
    return path


@pytest.mark.parametrize(("emotions", "is_of_emotions"), [(0.3, True), (0.999, False)])
def test_errors_are_published_by_the_thresholds_of_the_site(
    emotions: float, is_of_emotions: bool, domain_id: int, observer: Observer, tmp_path: Path
) -> None:
    from norm_nodes.convert import record_class
    from norm_nodes.endpoint import EVENTS

    seen = observer.collect(record_class(SocialFlag), "/tactful/flags", EVENTS)
    statuses = observer.watch_status()
    with monitor(domain_id, thresholds(tmp_path / "site.json", emotions=emotions)):
        play(observer, TALK)
        observer.until(lambda: "no_response" in flags_in(seen), "the last error of the talk")
        observer.until(lambda: any("as measured here" in one.notes for one in statuses), "what to expect of the site")
    errors = {cue: flag for cue, flag in flags_in(seen).items() if flag.polarity is Polarity.ERROR}
    assert set(errors) >= FLAGGED
    assert (Attribute.EMOTIONS in errors["cheerful_after_bad_news"].attributes) is is_of_emotions
    assert {flag.least_probability for flag in errors.values()} == {0.3}


def test_thresholds_of_other_weights_end_the_node_at_its_start(domain_id: int, tmp_path: Path) -> None:
    with (
        pytest.raises(NodeProcessError, match="differs from what runs here in weights; fit them anew"),
        monitor(domain_id, thresholds(tmp_path / "site.json", {"weights": "12"})),
    ):
        pass
