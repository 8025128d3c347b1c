"""Windows that the monitor tells of, and what the settings refuse."""

from collections.abc import Sequence

from norm_core.engines.sentences.sentence_encoder import SentenceEncoder, Vectors
from norm_core.records.episode import Query
from norm_core.records.frame import Frame
from norm_core.records.speech import Speaker, Utterance
from norm_core.runtime.time import NS_PER_S, ReplayClock
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.context.meaning import Concepts, EncoderMatcher
from norm_monitor.monitor import Monitor, MonitorConfig
from norm_monitor.windows.cutter import MAX_QUERIES, Record
from tests.node_records import camera_frame, counted
from tests.norm_monitor.encounter_talk import ALONE, at, robot, user, waiting_alone, with_silence
from tests.norm_monitor.senses.camera_messages import START_NS

S = NS_PER_S


def frame(at_s: float) -> Frame:
    return camera_frame(START_NS + round(at_s * S), b"")


def said(at_s: float, text: str = "", final: bool = False) -> Utterance:
    at_ns = START_NS + round(at_s * S)
    return Utterance(
        stamp_ns=at_ns, utterance_id=f"u{at_s}", speaker=Speaker.USER, text=text, start_ns=at_ns, end_ns=at_ns,
        final=final,
    )  # fmt: skip


def test_query_after_the_last_record_gets_its_window(meaning: EncoderMatcher) -> None:
    config = MonitorConfig.for_replay(("frames", "utterances"))
    monitor = Monitor(config, ThresholdTable.shipped(), meaning, ReplayClock())
    query = Query(stamp_ns=START_NS + 8 * S, query_id="q", episode_id="e", task="action")
    for record in (frame(1), said(2, "Where are the whales?", final=True), query):
        monitor.take(record)
    monitor.end_input()
    windows = {window.end_ns: window for window in monitor.closed_windows()}
    assert (windows[query.stamp_ns].frame_count, windows[query.stamp_ns].missing) == (1, ())


def test_many_queries_leave_windows_for_cues(meaning: EncoderMatcher) -> None:
    monitor = Monitor(ALONE, ThresholdTable.shipped(), meaning, ReplayClock(), unit_model=waiting_alone())
    talk = [entry for _, entry in with_silence([*user(1, 3, "Where can I buy a ticket?")], 30.0)]
    for number in range(1_000):
        monitor.take(Query(stamp_ns=at(9) + number, query_id=f"q{number}", episode_id="e", task="action"))
    assert "no_response" in {flag.cue_id for entry in talk for flag in monitor.take(entry)}
    assert counted(monitor)["queries_refused"] == 1_000 - MAX_QUERIES


def test_cited_window_is_published_with_its_frames(meaning: EncoderMatcher) -> None:
    monitor = Monitor(
        MonitorConfig.for_replay(("frames", "utterances"), calls_per_hour=240.0),
        ThresholdTable.shipped(),
        meaning,
        ReplayClock(),
    )
    talk = [*user(5, 6, "Where are the whales?"), *robot(14, 16, "They are upstairs."), *user(17, 18, "Thank you.")]
    pictures = [(at(second), camera_frame(at(second), b"")) for second in range(40)]
    records: list[tuple[int, Record]] = [*with_silence(talk, 40.0), *pictures]
    cited, published = set[str](), set[str]()
    for _, record in sorted(records, key=lambda given: given[0]):
        cited |= {flag.provenance.window_digest for flag in monitor.take(record)}
        published |= {window.sha256 for window in monitor.closed_windows() if window.frame_count}
    assert cited
    assert cited <= published


class Encoder(SentenceEncoder):
    """Notes the texts that it encodes."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def encode(self, sentences: Sequence[str]) -> Vectors:
        self.texts += [sentence for sentence in dict.fromkeys(sentences) if sentence not in self._vectors]
        return super().encode(sentences)


def test_words_are_encoded_once_and_before_their_window_closes() -> None:
    encoder = Encoder()
    meaning = EncoderMatcher(encoder, Concepts.shipped())
    config = MonitorConfig.for_replay(("utterances",))
    monitor = Monitor(config, ThresholdTable.shipped(), meaning, ReplayClock())
    monitor.take(said(1, "Where is the lift, please? I am late.", final=True))
    assert "I am late" in encoder.texts
    count = len(encoder.texts)
    monitor.take(said(20))
    assert monitor.closed_windows()
    assert len(encoder.texts) == count == len(set(encoder.texts))
