"""A model server that answers the judge's questions as the coder of a labelled encounter would.

It speaks the OpenAI chat-completions protocol with log-probabilities, as vLLM and llama-server do. It finds a window's
place in an encounter by the words and times of its transcript, and answers about the last one who speaks there.
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
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import Any

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
SURE = 0.9  # the probability of what it answers
NEAR_S, TOUCH_S = 1.0, 0.1  # how far a heard turn may be from a labelled one; what rounded times leave open
LEAST_ALIKE = 0.6  # of the words of at least one turn
NEITHER = ("neither", "两者都不是")
NO_ACT, NO_NORM = ("none of these", "以上都不是"), ("no norm is at stake", "不涉及规范")
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
LINE = re.compile(r"^\[(-?[\d.]+)-(-?[\d.]+) s\] (ROBOT|PERSON|SOMEONE|机器人|用户|某人)(?: [^:]*)?: (.*)$")
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
    offset_s: float
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
                Turn(t["speaker"] == "robot", seconds(t["start_ns"]), seconds(t["end_ns"]), t["text"])
                for t in truth["turns"]
            ),
            events=tuple(
                Event(
                    number,
                    e["polarity"],
                    tuple(e["attributes"]),
                    seconds(e["onset_ns"]),
                    seconds(e["offset_ns"]),
                    e["rationale"],
                    e["correction"],
                )
                for number, e in enumerate(truth["events"])
            ),
        )

    def event_of(self, last: Turn) -> Event | None:
        """The event that the last turn of a window shows: one that goes on in it, or a silence that begins with it."""

        def overlap_s(event: Event) -> float:
            return min(last.end_s, event.offset_s) - max(last.start_s, event.onset_s)

        def is_silence_after(event: Event) -> bool:
            answered = any(t.by_robot and event.onset_s <= t.start_s <= event.offset_s for t in self.turns)
            return abs(event.onset_s - last.end_s) <= NEAR_S and not last.by_robot and not answered

        shown = [event for event in self.events if overlap_s(event) > TOUCH_S]
        return max(shown, key=overlap_s) if shown else next(filter(is_silence_after, self.events), None)


@dataclass(frozen=True)
class Place:
    """Where in which encounter a transcript ends."""

    encounter: Encounter
    last: Turn
    event: Event | None

    @property
    def turn(self) -> int:
        """The number of the labelled turn that the last one is."""
        starts_s = [turn.start_s for turn in self.encounter.turns]
        return min(range(len(starts_s)), key=lambda number: abs(starts_s[number] - self.last.start_s))


def place(turns: Sequence[Turn], encounters: Sequence[Encounter]) -> Place | None:
    """Where the turns lie by the shift of time at which their words agree best; None where no words agree."""
    best_score, best = 0.0, None
    for encounter in encounters:
        for shift_s in sorted({known.start_s - turn.start_s for turn in turns for known in encounter.turns}):
            alike = [_alike(turn, shift_s, encounter) for turn in turns]
            if max(alike) >= LEAST_ALIKE and sum(alike) > best_score:
                last = max(turns, key=lambda turn: turn.start_s)
                there = Turn(last.by_robot, last.start_s + shift_s, last.end_s + shift_s, last.text)
                best_score, best = sum(alike), Place(encounter, there, encounter.event_of(there))
    return best


@dataclass
class LabelModel:
    """Answers requests by the labels, and writes a line of JSON to the log for each."""

    encounters: Sequence[Encounter]
    log: Path
    _lock: Lock = field(default_factory=Lock)
    _count: int = 0

    def complete(self, body: Json) -> Json:
        """The body of a chat completion; RequestError where the request is not understood."""
        parts = list(_parts(body))
        text = "\n".join(part["text"] for part in parts if "text" in part)
        if (transcript := TRANSCRIPT.search(text)) is None:
            raise RequestError("the prompt holds no transcript")
        found = place([_turn(match) for match in map(LINE.match, transcript[2].splitlines()) if match], self.encounters)
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
                "turn": found.turn if found else None,
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
    start_s, end_s, who, text = match.groups()
    return Turn(who in ROBOT_NAMES, float(start_s), float(end_s), text)


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
    elif set(options) & set(NO_ACT):
        wanted = NO_ACT
    elif set(options) & set(NO_NORM):
        wanted = NO_NORM
    else:
        raise RequestError(f"{question!r} with the options {options} is no question of the judge")
    return LETTERS[next(number for number, option in enumerate(options) if option in wanted)]


def _note(found: Place | None) -> Json:
    event = found.event if found else None
    if found is None or event is None:
        return {"rationale": "", "correction": "", "verbal": "", "nonverbal": ""}
    note = {"rationale": event.rationale, "correction": event.correction}
    return {**note, "verbal": found.last.text, "nonverbal": ""}


def _logprobs(letter: str, count: int, most: int) -> Json:
    """The log-probabilities of a first token as servers give them, the likeliest first."""
    if not 2 <= count <= len(LETTERS):
        raise RequestError(f"{count} options are lettered")
    rest = (1 - SURE) / (count - 1)
    shares = {one: SURE if one == letter else rest for one in LETTERS[:count]}
    likeliest = sorted(shares, key=lambda one: -shares[one])
    tops = [{"token": one, "logprob": math.log(shares[one]), "bytes": list(one.encode())} for one in likeliest]
    return {**tops[0], "top_logprobs": tops[:most]}


@lru_cache(maxsize=100_000)
def _likeness(text: str, other: str) -> float:
    return SequenceMatcher(None, _plain(text), _plain(other)).ratio()


def _plain(text: str) -> str:
    return " ".join(re.sub(r"[^\w\s]", "", text).lower().split())


if __name__ == "__main__":
    main()
