"""The parsers: each takes bytes, and may raise what it promises and nothing else."""

import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from action_selector.retrieval import read_precedents
from norm_core.engines.errors import EngineFailedError
from norm_core.engines.openai.batch import read_answers as read_batch_answers
from norm_core.models.bert_onnx import read_safetensors
from norm_core.models.gguf_file import GgufFile
from norm_core.models.manifest import Manifest
from norm_core.models.planning.machine import read_machine
from norm_core.records.json_codec import RecordError, from_json
from norm_core.records.status import MonitorStatus
from norm_core.runtime.config import load_config
from norm_core.runtime.data_files import shipped_file
from norm_core.runtime.errors import TactfulError
from norm_monitor.cues.threshold_table import ThresholdTable
from norm_monitor.judge.judge import read_note
from norm_monitor.senses.camera.picture import picture_in
from norm_monitor.senses.microphone.audio_message import chunks_of
from norm_monitor.senses.microphone.pcm import compressed_kind
from norm_monitor.senses.sensor_offsets import SensorOffsets
from sim_replays.scenarios.library import find as find_scenario
from sim_replays.scenarios.library import read as read_scenario
from sim_replays.suites.egogapbench import read as read_egogapbench
from sim_replays.suites.egonormia import read as read_egonormia
from sim_replays.suites.hsri_segments import read as read_hsri
from sim_replays.suites.suite import json_object
from sim_replays.suites.videonorms import read as read_videonorms
from sim_replays.talks.talk_file import read_talks
from study_desk.coding.forms.form_file import CheckedForm
from study_desk.log.reader import read as read_log
from study_desk.privacy.redact import KeyFile
from tactful_cli.graph_stream import parse_line
from tactful_cli.up.profile import load as load_profile

CASES = Path(__file__).with_name("cases")


@dataclass(frozen=True)
class Target:
    """A parser, with bytes that it reads."""

    parse: Callable[[bytes], object]
    seeds: tuple[bytes, ...]
    raises: tuple[type[Exception], ...] = (TactfulError,)

    def run(self, data: bytes) -> bool:
        """Parse bytes; return whether they were read. Anything but a promised error passes through."""
        try:
            self.parse(data)
        except self.raises:
            return False
        return True


def _file(name: str, read: Callable[[Path], Any]) -> Callable[[bytes], object]:
    """A parser of files, given a file of that name in a folder of its own."""

    def parse(data: bytes) -> object:
        with tempfile.TemporaryDirectory(prefix="fuzz-", dir=_memory()) as folder:
            path = Path(folder, name)
            path.write_bytes(data)
            found = read(path)
            return list(found) if isinstance(found, Iterable) else found

    return parse


def _memory() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def _form(path: Path) -> None:
    form = CheckedForm(path)
    form.verdicts()


EAF = b"""<?xml version="1.0"?><ANNOTATION_DOCUMENT AUTHOR="" DATE="2026-01-01T00:00:00+00:00" FORMAT="3.0"
VERSION="3.0">
<HEADER MEDIA_FILE="" TIME_UNITS="milliseconds"/><TIME_ORDER><TIME_SLOT TIME_SLOT_ID="ts1" TIME_VALUE="0"/>
<TIME_SLOT TIME_SLOT_ID="ts2" TIME_VALUE="900"/></TIME_ORDER><TIER LINGUISTIC_TYPE_REF="d" TIER_ID="emotions">
<ANNOTATION><ALIGNABLE_ANNOTATION ANNOTATION_ID="a1" TIME_SLOT_REF1="ts1" TIME_SLOT_REF2="ts2"><ANNOTATION_VALUE>error
</ANNOTATION_VALUE></ALIGNABLE_ANNOTATION></ANNOTATION></TIER><LINGUISTIC_TYPE LINGUISTIC_TYPE_ID="d"/>
</ANNOTATION_DOCUMENT>"""
TEXTGRID = b"""File type = "ooTextFile"\nObject class = "TextGrid"\n\nxmin = 0\nxmax = 2\ntiers? <exists>\nsize = 1
item []:\n item [1]:\n class = "IntervalTier"\n name = "emotions"\n xmin = 0\n xmax = 2\n intervals: size = 1
 intervals [1]:\n xmin = 0\n xmax = 2\n text = "error"\n"""
BORIS = (
    b'{"project_format_version":"7.0","behaviors_conf":{"0":{"code":"error","type":"Point event"}},"subjects_conf":{},\
"observations":{"s":{"type":"MEDIA","time offset":0,"events":[[1.5,"","error","",""]],"file":{"1":["a.mp4"]}}}}'
)
TABLE = b"session,coder,start_s,end_s,polarity,attribute\nS1,A,1.0,2.5,error,emotions\n"
WAV = (
    b"RIFF\x2c\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x80\x3e\x00\x00\x00\x7d\x00\x00\x02\x00\x10\x00data\
\x08\x00\x00\x00\x00\x01\x00\x02\x00\x03\x00\x04"
)
SAFETENSORS = (
    b'\x3a\x00\x00\x00\x00\x00\x00\x00{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}    \x00\x00\x80\x3f'
)
GGUF = (
    b"GGUF\x03\x00\x00\x00"
    + b"\x00" * 8
    + b"\x01"
    + b"\x00" * 7
    + b"\x01"
    + b"\x00" * 7
    + b"a\x08\x00\x00\x00\x01"
    + b"\x00" * 8
)
MANIFEST = (
    b"name: m\ntask: language\nengine: openai\nquantization: none\nsource: {url: 'http://a:1/v1'}\nlicence: none\n"
)
PROFILE = (
    b"/tactful/camera:\n  ros__parameters: {topic: /eye, keep_hz: 2.0}\n/**:\n  ros__parameters: {use_sim_time: true}\n"
)
LOG = b'{"v":1,"seq":0,"kind":"session","wall_ns":1,"ros_ns":1,"salt":"00","prev":"","body":{"record":{}},"hash":""}\n'
TALK = b'{"id":"t","corpus":"c","turns":[{"by":"person","text":"Hello."},{"by":"robot","text":"Go away."}]}\n'
STATUS = (
    b'{"stamp_ns":1,"node":"/a","state":"active","health":"ok","software_version":"1","config_sha256":"","instance_id":"i",\
"started_ns":1}'
)

TARGETS: dict[str, Target] = {
    "sound_file": Target(_file("a.wav", chunks_of), (WAV,)),
    "sound_kind": Target(compressed_kind, (WAV, b"ID3\x04\x00", b"\xff\xfb\x90\x00", b"OggS")),
    "picture_message": Target(
        lambda data: [picture_in(data, compressed=kind) for kind in (True, False)], (b"\0\1\0\0",)
    ),
    "eaf": Target(_file("a.eaf", _form), (EAF,)),
    "textgrid": Target(_file("a.TextGrid", _form), (TEXTGRID,)),
    "boris": Target(_file("a.boris", _form), (BORIS,)),
    "table": Target(_file("a.csv", _form), (TABLE,)),
    "labels": Target(
        _file("a.jsonl", _form),
        (b'{"session":"S1","coder":"A","start_s":1,"end_s":2,"polarity":"error","attribute":"emotions"}\n',),
    ),
    "review": Target(_file("a.json", _form), (b'{"session":"S1","reviews":[]}', b"[]")),
    "study_log": Target(_file("a.jsonl", read_log), (LOG,)),
    "keys": Target(
        _file("keys.json", lambda path: KeyFile(path).names()),
        (b'{"version":1,"participants":{"P-7K3MX":{"names":["Ada"]}}}',),
    ),
    "safetensors": Target(_file("a.safetensors", read_safetensors), (SAFETENSORS,)),
    "gguf": Target(_file("a.gguf", GgufFile), (GGUF,), (TactfulError, EngineFailedError)),
    "manifest": Target(_file("m.yaml", lambda path: load_config(Manifest, path)), (MANIFEST,)),
    "machine": Target(_file("m.yaml", read_machine), (b'{"architecture":"aarch64","ram_mb":8000,"gpus":[]}',)),
    "offsets": Target(_file("o.yaml", lambda path: SensorOffsets.camera_ns(str(path), "/a")), (b"camera: {}\n",)),
    "cues": Target(
        _file("c.yaml", ThresholdTable.of), (shipped_file("norm_monitor.cues", "thresholds.yaml").read_bytes(),)
    ),
    "profile": Target(_file("p.yaml", lambda path: load_profile(str(path))), (PROFILE,)),
    "scenario": Target(_file("museum_phone.yaml", read_scenario), (find_scenario("museum_phone").read_bytes(),)),
    "talks": Target(_file("t.jsonl", lambda path: read_talks([path])), (TALK,)),
    "precedents": Target(_file("p.jsonl", read_precedents), (b'{"situation":"a","action":"b"}\n',)),
    "egonormia": Target(_file("e.json", read_egonormia), (b'{"a":{"behaviors":["x"]}}',)),
    "egogapbench": Target(_file("e.json", read_egogapbench), (b'[{"id":"a","options":["x"],"answer":"A"}]',)),
    "hsri": Target(_file("h.json", read_hsri), (b'[{"video":"a","start":0,"end":1}]',)),
    "videonorms": Target(_file("v.json", read_videonorms), (b'[{"clip":"a","norm":"b"}]',)),
    "batch_answers": Target(
        _file("answers.jsonl", lambda path: read_batch_answers(path.parent)),
        (b'{"custom_id":"a","response":{"status_code":200,"body":{"choices":[]}}}\n',),
    ),
    "note": Target(lambda data: read_note(data.decode("utf-8", "replace")), (b'{"rationale":"a","quote":"b"}',)),
    "reply": Target(lambda data: json_object(data.decode("utf-8", "replace")), (b'```json\n{"action": "A"}\n```',)),
    "status": Target(lambda data: from_json(MonitorStatus, data.decode("utf-8", "replace")), (STATUS,), (RecordError,)),
    "graph_line": Target(lambda data: parse_line(data.decode("utf-8", "replace")), (b'{"kind":"a","topic":"b"}',)),
}


def cases_of(name: str) -> list[Path]:
    """What once crashed a parser, or leads far into it."""
    return sorted((CASES / name).glob("*"))
