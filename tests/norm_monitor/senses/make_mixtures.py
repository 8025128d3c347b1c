"""Makes mixtures.flac and mixtures.json anew: the robot's echo and a user, alone and over one another.

Needs espeak-ng; the tests need only what it made. Run `python tests/norm_monitor/senses/make_mixtures.py`.
"""

import json
import subprocess
from pathlib import Path

import av
import numpy as np

from norm_monitor.senses.microphone.pcm import Resampler, Samples

HERE = Path(__file__).parent
RATE_HZ = 16_000
SCENE_S = 6.0
ROBOT, USER = "en-us+f3", "en-gb+m3"

CLOSES, BOOKS = "The reading room closes at nine this evening", "There are seven books about the sea"
LIFT = "Please take the lift on your left, the second floor."
STOP, MAP = "Stop, stop, that is not what I asked.", "No, thank you, I already have a map."
WHERE = "Where can I find the history section please?"

# Each: what the robot says, how loud its echo is and how much noise is in it; what the user says, when, how loud;
# and when the robot stops because of it.
SCENES = [
    ("echo alone", "There are seven books about the sea.", 0.10, 0.0, "", 0.0, 0.0, None),
    ("user alone", "", 0.0, 0.0, "No wait, I want the history section.", 1.0, 0.3, None),
    ("garbled echo alone", "The reading room closes at nine this evening.", 0.10, 0.006, "", 0.0, 0.0, None),
    ("garbled echo alone", "Your book is due back on Friday.", 0.10, 0.008, "", 0.0, 0.0, None),
    ("barge-in", f"{CLOSES}, and the cafe serves soup until three.", 0.08, 0.0, STOP, 3.0, 0.4, 4.0),
    ("answer at once", "Would you like me to show you the way?", 0.10, 0.0, MAP, -0.15, 0.3, None),
    ("barge-in as loud as the echo", f"{BOOKS}, and my name is Robin.", 0.15, 0.0, WHERE, 2.2, 0.25, 2.6),
    ("barge-in without an echo", LIFT, 0.0, 0.0, "Can you speak a little louder please?", 1.4, 0.3, None),
]


def said(text: str, voice: str) -> Samples:
    """A voice at full scale, without the silence about it."""
    if not text:
        return np.zeros(0, np.float32)
    command = ["espeak-ng", "-v", voice, "-s", "150", "--stdout", text]
    data = subprocess.run(command, capture_output=True, check=True).stdout[44:]
    samples = np.frombuffer(data, "<i2", len(data) // 2).astype(np.float32)
    resampler = Resampler(22_050, RATE_HZ, 512)
    sound = np.concatenate([*resampler.feed(samples), *resampler.flush()])
    loud = np.nonzero(np.abs(sound) > 0.01 * np.abs(sound).max())[0]
    sound = sound[loud[0] : loud[-1] + 1]
    return np.asarray(sound / np.abs(sound).max(), np.float32)


def main() -> None:
    noise = np.random.default_rng(3)
    sound, truth = [], []
    for index, (what, robot_text, echo, garble, user_text, user_at_s, loudness, yields_s) in enumerate(SCENES):
        scene = np.zeros(round(SCENE_S * RATE_HZ), np.float32)
        at_s = index * SCENE_S
        entry: dict[str, object] = {"what": what, "at_s": at_s}
        robot = said(robot_text, ROBOT)
        robot_start, robot_end = 0.5, 0.5 + len(robot) / RATE_HZ
        if yields_s is not None:
            robot_end = min(robot_end, yields_s)
            robot = robot[: round((robot_end - robot_start) * RATE_HZ)]
        if len(robot):
            first = round(robot_start * RATE_HZ)
            echoed = echo * robot + garble * noise.standard_normal(len(robot)).astype(np.float32)
            scene[first : first + len(robot)] += echoed
            entry["robot"] = {"text": robot_text, "start_s": at_s + robot_start, "end_s": round(at_s + robot_end, 4)}
        user = said(user_text, USER)
        if len(user):
            start_s = robot_end - user_at_s if user_at_s < 0 else user_at_s
            first = round(start_s * RATE_HZ)
            scene[first : first + len(user)] += loudness * user
            end_s = round(at_s + start_s + len(user) / RATE_HZ, 4)
            entry["user"] = {"text": user_text, "start_s": round(at_s + start_s, 4), "end_s": end_s}
        sound.append(scene + 0.0005 * noise.standard_normal(len(scene)).astype(np.float32))
        truth.append(entry)
    # Twelve bits are plenty, and make a third of the bytes.
    coarse = (np.round(np.clip(np.concatenate(sound), -1, 1) * 2_047) * 16).astype(np.int16)
    with av.open(str(HERE / "mixtures.flac"), "w") as container:
        stream = container.add_stream("flac", rate=RATE_HZ, layout="mono")
        frame = av.AudioFrame.from_ndarray(coarse[None, :], format="s16", layout="mono")
        frame.sample_rate = RATE_HZ
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    (HERE / "mixtures.json").write_text(json.dumps(truth, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
