"""A model server that answers the judge's questions as the coder of a labelled encounter would.

It speaks the OpenAI chat-completions protocol with log-probabilities, as vLLM and llama-server do. It finds the place
of a talk in an encounter by the words and times of its transcript alone, and answers about the unit that is marked.
It is a program of its own and imports nothing of the product.
"""

import argparse
import base64
import hashlib
import json
import math
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import Any

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
SURE = 0.9  # the probability of what it answers
NEAR_S = 1.0  # how far a unit that is shown may be from a unit of the labelled talk
TOLERANCE_S = 2.0  # how far an event's onset may be from its unit's
GAP_S, SILENCE_S = 1.0, 2.0  # between two turns of one speaker; the shortest silence that is a unit
LEAST_ALIKE = 0.6  # of the words of at least one turn
NEITHER = ("ordinary conduct", "普通行为")
POLARITIES = {"error": ("a social error", "社交失误"), "competence": ("a social competence", "社交得体")}
YES, NO = ("yes", "是"), ("no", "否")
# What each attribute's question alone says.
ATTRIBUTES = {
    "emotions": ("someone feels", "情绪"),
    "engagement": ("loses interest", "失去兴趣"),
    "conversational_mechanics": ("taking turns", "轮流说话"),
    "knowledge_state": ("others know or have said", "知道或说过"),
    "user_intention": ("wants or means to do", "打算做什么"),
    "social_context_and_relationships": ("roles and relationships", "角色"),
    "social_norms_and_routines": ("manners and routines", "礼仪和惯例"),
}
ROBOT_NAMES = {"ROBOT", "机器人"}
TRANSCRIPT = re.compile(r"^(={3,}) (?:transcript|对话记录) \(data, not instructions\)\n(.*?)\n\1$", re.M | re.S)
TIME = r"^(>> )?\[(-?[\d.]+)(?:-(-?[\d.]+))? s\] "
LINE = re.compile(TIME + r"(ROBOT|PERSON|SOMEONE|机器人|用户|某人)(?: [^:]*)?: (.*)$")
SILENCE = re.compile(TIME + r"[(（].*(?:silence|沉默).*[)）]$")
OTHER = re.compile(TIME + r"[(（].*[)）]$")
ROBOT_TURN, PERSON_TURN, SILENT, SEEN = "robot_turn", "person_turn", "silence", "sighting"
OPTION = re.compile(r"^([A-Za-z])\. (.*)$")

Json = dict[str, Any]


class RequestError(ValueError):
    """A request that this server cannot answer; the message says why."""


@dataclass(frozen=True)
class Turn:
    """A turn of a transcript or of the labels, in seconds of its own clock."""

    by_robot: bool
    start_s: float
    end_s: float
    text: str
    speaker: str = ""

    def likeness(self, other: "Turn") -> float:
        """How alike the words are, from 0 to 1; 0 where a robot's turn meets a person's."""
        return _likeness(self.text, other.text) if self.by_robot is other.by_robot else 0.0


@dataclass(frozen=True)
class Event:
    """A labelled error or competence; number is its place in the file."""

    number: int
    polarity: str
    attributes: tuple[str, ...]
    onset_s: float
    rationale: str
    correction: str


@dataclass(frozen=True)
class Encounter:
    name: str
    turns: tuple[Turn, ...]
    events: tuple[Event, ...]

    @classmethod
    def read(cls, path: Path) -> "Encounter":
        """The labels in a .truth.json file, with times in seconds from the encounter's start."""
        truth = json.loads(path.read_text(encoding="utf-8"))

        def seconds(at_ns: int) -> float:
            return float((at_ns - truth["start_ns"]) / 1e9)

        return cls(
            name=truth["encounter_id"],
            turns=tuple(
                Turn(who == "robot", seconds(t["start_ns"]), seconds(t["end_ns"]), t["text"], who + t["speaker_id"])
                for t in truth["turns"]
                for who in [t["speaker"]]
            ),
            events=tuple(
                Event(
                    at, e["polarity"], tuple(e["attributes"]), seconds(e["onset_ns"]), e["rationale"], e["correction"]
                )
                for at, e in enumerate(truth["events"])
            ),
        )

    @cached_property
    def units(self) -> tuple["Unit", ...]:
        """What a coder marks: the turns, joined over short gaps, and the silences after people's turns."""
        joined: list[Turn] = []
        for turn in self.turns:
            last = joined[-1] if joined else None
            if last and last.speaker == turn.speaker and turn.start_s - last.end_s < GAP_S:
                joined[-1] = replace(last, end_s=max(last.end_s, turn.end_s), text=f"{last.text} {turn.text}")
            else:
                joined.append(turn)
        units = [Unit(ROBOT_TURN if turn.by_robot else PERSON_TURN, turn.start_s) for turn in joined]
        next_starts_s = [*(turn.start_s for turn in joined[1:]), math.inf]
        for turn, next_s in zip(joined, next_starts_s, strict=True):
            if not turn.by_robot and next_s - turn.end_s >= SILENCE_S:
                units.append(Unit(SILENT, turn.end_s))
        return tuple(sorted(units, key=lambda unit: unit.onset_s))

    @cached_property
    def marked(self) -> dict["Unit", Event]:
        """Each event on one unit: as many as possible, each as near to its onset as possible, in the order of time."""
        events = sorted(self.events, key=lambda event: event.onset_s)

        @cache
        def best(event: int, unit: int) -> tuple[int, float, tuple[tuple[int, int], ...]]:
            if event == len(events) or unit == len(self.units):
                return 0, 0.0, ()
            ways = [best(event + 1, unit), best(event, unit + 1)]
            far_s = abs(events[event].onset_s - self.units[unit].onset_s)
            if far_s <= TOLERANCE_S:
                count, nearness, pairs = best(event + 1, unit + 1)
                ways.append((count + 1, nearness - far_s, ((event, unit), *pairs)))
            return max(ways, key=lambda way: way[:2])

        return {self.units[unit]: events[event] for event, unit in best(0, 0)[2]}

    def event_seen_at(self, onset_s: float) -> Event | None:
        """The event that begins with something seen there, and with no turn and no silence."""
        left = [event for event in self.events if event not in self.marked.values()]
        found = min(left, key=lambda event: abs(event.onset_s - onset_s), default=None)
        return found if found and abs(found.onset_s - onset_s) <= TOLERANCE_S else None

    def unit_near(self, kind: str, onset_s: float) -> "Unit | None":
        """The unit of this kind that begins there."""
        found = min(
            (unit for unit in self.units if unit.kind == kind),
            key=lambda unit: abs(unit.onset_s - onset_s),
            default=None,
        )
        return found if found and abs(found.onset_s - onset_s) <= NEAR_S else None


@dataclass(frozen=True)
class Unit:
    """What is judged: its kind, and its onset in seconds of an encounter or of a prompt."""

    kind: str
    onset_s: float


@dataclass(frozen=True)
class Place:
    """Which unit of which encounter a prompt marks."""

    encounter: Encounter
    unit: Unit | None  # None for what is no turn and no silence of the labels
    event: Event | None


def place(turns: Sequence[Turn], marked: Unit, encounters: Sequence[Encounter]) -> Place | None:
    """Where the marked unit lies by the shift of time at which the words agree best; None where no words agree."""
    best_score, best = 0.0, None
    for encounter in encounters:
        pairs = ((turn, known) for turn in turns for known in encounter.turns)
        for shift_s in sorted({b.start_s - a.start_s for a, b in pairs if a.likeness(b) >= LEAST_ALIKE}):
            alike = [_alike(turn, shift_s, encounter) for turn in turns]
            if sum(alike) > best_score:
                best_score, best = sum(alike), (encounter, marked.onset_s + shift_s)
    if best is None:
        return None
    encounter, onset_s = best
    if marked.kind == SEEN:
        return Place(encounter, Unit(SEEN, onset_s), encounter.event_seen_at(onset_s))
    unit = encounter.unit_near(marked.kind, onset_s)
    return Place(encounter, unit, encounter.marked.get(unit) if unit else None)


@dataclass
class LabelModel:
    """Answers requests by the labels, and writes a line of JSON to the log for each."""

    encounters: Sequence[Encounter]
    log: Path
    _lock: Lock = field(default_factory=Lock)
    _count: int = 0
    _places: dict[str, Place | None] = field(default_factory=dict)

    def complete(self, body: Json) -> Json:
        """The body of a chat completion; RequestError where the request is not understood."""
        parts = list(_parts(body))
        text = "\n".join(part["text"] for part in parts if "text" in part)
        if (transcript := TRANSCRIPT.search(text)) is None:
            raise RequestError("the prompt holds no transcript")
        found = self._place(transcript[2])
        question, options = _question(text[transcript.end() :])
        event = found.event if found else None
        answer = json.dumps(_note(found)) if "response_format" in body else _choice(question, options, event)
        self._write(
            {
                "transcript": transcript[2],
                "question": question,
                "options": options,
                "answer": options[LETTERS.index(answer)] if options else answer,
                "images": sum("image_sha256" in part for part in parts),
                "image_sha256": [part["image_sha256"] for part in parts if "image_sha256" in part],
                "encounter": found.encounter.name if found else None,
                "unit": [found.unit.kind, found.unit.onset_s] if found and found.unit else None,
                "event": event.number if event else None,
                "content": parts,
            }
        )
        message = {"role": "assistant", "content": answer}
        choice: Json = {"index": 0, "message": message, "finish_reason": "stop"}
        if body.get("logprobs"):
            choice["logprobs"] = {"content": [_logprobs(answer, len(options), body.get("top_logprobs", 0))]}
        words = len(text.split())
        return {
            "id": f"chatcmpl-{self._count}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": body["model"],
            "choices": [choice],
            "usage": {"prompt_tokens": words, "completion_tokens": 1, "total_tokens": words + 1},
        }

    def _place(self, transcript: str) -> Place | None:
        if transcript not in self._places:  # every question about a unit holds the same
            lines = transcript.splitlines()
            turns = [_turn(match) for match in map(LINE.match, lines) if match]
            self._places[transcript] = place(turns, _marked(lines), self.encounters)
        return self._places[transcript]

    def _write(self, line: Json) -> None:
        with self._lock:
            self._count += 1
            with self.log.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(line, ensure_ascii=False) + "\n")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: LabelModel

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path != "/v1/chat/completions":
            self._fail(404, f"there is no {self.path}")
            return
        try:
            self._answer(200, self.model.complete(json.loads(content)))
        except (RequestError, KeyError, TypeError, json.JSONDecodeError) as error:
            self._fail(400, f"{type(error).__name__}: {error}")

    def log_message(self, *_: object) -> None:
        """Nothing: the log holds every request."""

    def _fail(self, status: int, message: str) -> None:
        self._answer(status, {"error": {"message": message, "type": "invalid_request_error", "code": status}})

    def _answer(self, status: int, body: Json) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until the process is ended; the first line printed is the server's URL."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("labels", type=Path, nargs="+", help=".truth.json files of encounters")
    parser.add_argument("--log", type=Path, required=True, help="a line of JSON for each request is added to this file")
    parser.add_argument("--port", type=int, default=0, help="0 for any that is free")
    options = parser.parse_args(arguments)
    Handler.model = LabelModel([Encounter.read(path) for path in options.labels], options.log)
    with ThreadingHTTPServer(("127.0.0.1", options.port), Handler) as server:
        server.daemon_threads = True
        print(f"http://127.0.0.1:{server.server_address[1]}/v1", flush=True)
        server.serve_forever()


def _parts(body: Json) -> Iterator[Json]:
    """The parts of the message in order: a text, or the digest of a picture."""
    (message,) = body["messages"]
    content = message["content"]
    parts: list[Json] = [{"type": "text", "text": content}] if isinstance(content, str) else content
    for part in parts:
        if part["type"] == "text":
            yield {"text": part["text"]}
        else:
            kind, _, data = part["image_url"]["url"].partition(";base64,")
            if kind != "data:image/jpeg":
                raise RequestError(f"a picture should be a data URL of a JPEG, not {kind[:40]}")
            yield {"image_sha256": hashlib.sha256(base64.b64decode(data, validate=True)).hexdigest()}


def _turn(match: re.Match[str]) -> Turn:
    _, start_s, end_s, who, text = match.groups()
    return Turn(who in ROBOT_NAMES, float(start_s), float(end_s), text)


def _marked(lines: Sequence[str]) -> Unit:
    """What a transcript marks; RequestError where that is not one line."""
    marked = [line for line in lines if line.startswith(">> ")]
    if len(marked) != 1:
        raise RequestError(f"{len(marked)} lines of the transcript are marked, not one")
    if match := LINE.match(marked[0]):
        return Unit(ROBOT_TURN if match[4] in ROBOT_NAMES else PERSON_TURN, float(match[2]))
    if match := SILENCE.match(marked[0]) or OTHER.match(marked[0]):
        return Unit(SILENT if SILENCE.match(marked[0]) else SEEN, float(match[2]))
    raise RequestError(f"the marked line {marked[0]!r} has no time")


def _alike(turn: Turn, shift_s: float, encounter: Encounter) -> float:
    near = (known for known in encounter.turns if abs(known.start_s - turn.start_s - shift_s) <= NEAR_S)
    return max((turn.likeness(known) for known in near), default=0.0)


def _question(text: str) -> tuple[str, list[str]]:
    """What is asked after the transcript, and its lettered options."""
    lines = text.strip().splitlines()
    options = [match[2] for match in map(OPTION.match, lines) if match]
    end = next((number for number, line in enumerate(lines) if OPTION.match(line)), len(lines))
    return "\n".join(lines[:end]), options


def _choice(question: str, options: list[str], event: Event | None) -> str:
    """The letter of the option that the labels call for."""
    wanted: tuple[str, ...]
    if set(options) & set(NEITHER):
        wanted = POLARITIES[event.polarity] if event else NEITHER
    elif set(options) <= {*YES, *NO} and options:
        asked = next((name for name, said in ATTRIBUTES.items() if any(one in question for one in said)), None)
        if asked is None:
            raise RequestError(f"no attribute is known by {question!r}")
        wanted = YES if event and asked in event.attributes else NO
    else:
        raise RequestError(f"{question!r} with the options {options} is no question of the judge")
    return LETTERS[next(number for number, option in enumerate(options) if option in wanted)]


def _note(found: Place | None) -> Json:
    event = found.event if found else None
    if event is None:
        return {"rationale": "", "correction": "", "quote": ""}
    return {"rationale": event.rationale, "correction": event.correction, "quote": ""}


def _logprobs(letter: str, count: int, most: int) -> Json:
    """The log-probabilities of a first token as servers give them, the likeliest first."""
    if not 2 <= count <= len(LETTERS):
        raise RequestError(f"{count} options are lettered")
    rest = (1 - SURE) / (count - 1)
    shares = {one: SURE if one == letter else rest for one in LETTERS[:count]}
    likeliest = sorted(shares, key=lambda one: -shares[one])
    tops = [{"token": one, "logprob": math.log(shares[one]), "bytes": list(one.encode())} for one in likeliest]
    return {**tops[0], "top_logprobs": tops[:most]}


def _likeness(text: str, other: str) -> float:
    """The share of words that two texts have in common."""
    words, others = _words(text), _words(other)
    return 2 * len(words & others) / (len(words) + len(others)) if words or others else 0.0


@lru_cache(maxsize=100_000)
def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[\u4e00-\u9fff]|[^\W\u4e00-\u9fff]+", text.lower()))


if __name__ == "__main__":
    main()
