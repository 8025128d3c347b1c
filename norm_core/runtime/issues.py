"""The issues that a node's status can name: what each means and its remedy, for the status reference.

A name that ends in * stands for a family of issues. Those of the camera stand with its faults.
"""

from norm_core.records.record import record
from norm_core.runtime.program import PROGRAM


@record
class IssueHelp:
    """The reference entry of an issue in a node's status."""

    line: str  # how the line in the status begins, or what is typical of it
    meaning: str
    remedy: str


ISSUES: dict[str, IssueHelp] = {
    "loss on *": IssueHelp(
        line="TOPIC: messages are lost",
        meaning="the middleware lost messages before the node took them",
        remedy="use the compressed topic for images, or a reliable publisher, or a faster machine",
    ),
    "parameters": IssueHelp(
        line="FILE: the section NAME matches no node",
        meaning="a section of the parameter file has no effect, because no node has its full name",
        remedy="rename the section as the line says, and start the process again",
    ),
    "transition": IssueHelp(
        line="NODE: ..., and the health is FAILED",
        meaning="the node could not be configured, activated or cleaned up",
        remedy="mend what the line names, and ask for the transition again",
    ),
    "server of *": IssueHelp(
        line="URL: cannot be reached",
        meaning="no connection to the model's server; its requests fail at once, and it is tried in the background",
        remedy="start the server, or correct source.url in the model's manifest",
    ),
    "engine of *": IssueHelp(
        line="MODEL: its memory ended, its process ended, or a part of it runs elsewhere",
        meaning="the model works with less than it was given: fewer or smaller pictures, words alone, or a fallback; "
        "or llama.cpp crashed, and is started again",
        remedy="take a smaller model or quantization, end what else uses the GPU, or run doctor, as the line says",
    ),
    "duplicate_node": IssueHelp(
        line="NODE: another node of this name runs on this ROS domain",
        meaning="two processes host the same node, and both publish",
        remedy="stop one of them, or set ROS_DOMAIN_ID",
    ),
    "messages on *": IssueHelp(
        line="TOPIC: a message was not used",
        meaning="a field of the message is invalid",
        remedy="change what the publisher sends, as the line says",
    ),
    "type of *": IssueHelp(
        line="TOPIC: not subscribed, not played or not recorded",
        meaning="the topic's message type is not installed, or its publishers use another version of it or two types",
        remedy="install, source or rebuild the package that the line names",
    ),
    "publisher of *": IssueHelp(
        line="TOPIC: nobody publishes it yet",
        meaning="a topic to record was named, and has no publisher",
        remedy="start the publisher, or name the topic that the line proposes",
    ),
    "audio": IssueHelp(
        line="ears: the parameter audio_type is empty",
        meaning="no microphone is subscribed",
        remedy="set audio_type to the type of the audio topic",
    ),
    "audio rate": IssueHelp(
        line="TOPIC: about RATE samples a second arrive, which is not the stated rate",
        meaning="words are not recognised, as the sound is too fast or too slow",
        remedy="set rate_hz of ears to the measured rate or correct sample_format; stop a second publisher",
    ),
    "microphone": IssueHelp(
        line="TOPIC: no audio for SECONDS; microphone: ...",
        meaning="the microphone's publisher stopped, or nobody publishes the topic",
        remedy="start the microphone's driver; check audio_topic and ROS_DOMAIN_ID",
    ),
    "words": IssueHelp(
        line="TOPIC: nobody publishes it, so no words of people are heard",
        meaning="the robot's own recogniser stopped, or its topic has another name",
        remedy="start the recogniser, or correct words_topic of ears",
    ),
    "publishers": IssueHelp(
        line="TOPIC: 2 publishers send audio; TOPIC has two publishers",
        meaning="two publishers send audio, or two nodes publish presence",
        remedy="stop all but one; for presence, set the camera's faces to false",
    ),
    "transcriber": IssueHelp(
        line="ears: a speech segment was not transcribed",
        meaning="the speech recognizer failed, and the segment is lost",
        remedy="free memory, or use a smaller Whisper model",
    ),
    "accelerator of *": IssueHelp(
        line="voice activity, faces or speech recognition: PROVIDER does not run the model",
        meaning="TensorRT or CUDA was asked for and is not there, does not load or failed at work; the next provider, "
        "at last the CPU, runs the model until the node is configured again",
        remedy="install or mend what the line names, or change voice_providers, face_providers or whisper_device",
    ),
    "camera": IssueHelp(
        line="webcam: ...",
        meaning="the webcam is absent, may not be opened or gives no pictures; the node tries again by itself",
        remedy="plug the camera in, close other programs that use it, or set device of webcam",
    ),
    "faces": IssueHelp(
        line="camera: no faces are detected; faces: a frame was not searched",
        meaning="the face models are not installed, cannot be loaded, or failed on a frame, which has no presence",
        remedy=f"run {PROGRAM} models pull with the name in the line; name cpu in face_providers, or free memory",
    ),
    "people": IssueHelp(
        line="TOPIC: no persons arrive",
        meaning="the tracker of persons stopped, or nobody publishes its topic",
        remedy="start the tracker; check the parameter humans and ROS_DOMAIN_ID",
    ),
    "judge": IssueHelp(
        line="judge: the model ..., and cues go on alone",
        meaning="the judge's model is unknown, cannot be loaded or gave no answer; cues go on without it",
        remedy="mend what the line names: the model's name, memory, the server's address, or judge.deadline_s",
    ),
    "late_answers": IssueHelp(
        line="judge: more than 20% of its latest answers came after their unit's flag had closed",
        meaning="the judge works, and answers too late to change a flag",
        remedy="name a smaller model in judge.model, lower judge.images or judge.calls_per_hour, or raise "
        "fusion.open_s",
    ),
    "judge_queue": IssueHelp(
        line="judge: 16 units wait",
        meaning="the judge's model is slower than its budget of calls; cues alone flag the units that find no room",
        remedy="lower judge.calls_per_hour, or name a faster model in judge.model",
    ),
    "pictures": IssueHelp(
        line="judge: the model MODEL runs on another machine; selector: ...",
        meaning="images are not sent to a model on another machine",
        remedy="set pictures_may_leave to true where they may be sent",
    ),
    "prompts": IssueHelp(
        line="judge.prompts_folder: no prompt can be written",
        meaning="the disk takes no more prompts; judging goes on",
        remedy="free some room there, or name another folder",
    ),
    "missing": IssueHelp(
        line="utterances, presence or frames: windows close without them",
        meaning="the source's node is absent or slow, or the source is silent; that somebody talked on is a note, "
        "and no problem",
        remedy="start the node that the line names, or read its status; windows.lateness_s sets how long windows wait",
    ),
    "robot": IssueHelp(
        line="robot speech: nothing is heard of the robot",
        meaning="nobody publishes the robot's speech, or people spoke and it never did; nothing that it says or leaves "
        "unsaid is flagged",
        remedy="set robot_speech_topic of ears",
    ),
    "robot topic *": IssueHelp(
        line="TOPIC: nobody publishes it, or it is published as another type",
        meaning="nothing is heard of the robot's words or of their times on a topic that ears reads",
        remedy="start the robot's speech, or correct the parameter of ears that the line names",
    ),
    "robot rivals": IssueHelp(
        line="robot_speech: has a publisher beside ears",
        meaning="ears publishes what the robot's own topics tell, and somebody else does so too; turns count twice",
        remedy="stop the others, or set robot_speech_topic of ears to robot_speech",
    ),
    "robot voice": IssueHelp(
        line="robot speech: a text was not followed by the voice, or the voice never stops",
        meaning="the topic that states whether the robot speaks is wrong or hangs; times are estimated",
        remedy="check robot_speaking_topic of ears",
    ),
    "echo delay": IssueHelp(
        line="robot speech: its sound comes over 40 ms after its stated starts",
        meaning="the delay of the robot's voice differs from the one at which its sensors were measured",
        remedy=f"run {PROGRAM} calibrate sensors again",
    ),
    "language": IssueHelp(
        line="language: the talk is in LANGUAGE",
        meaning="people or the robot speak neither English nor Chinese; wording and exchanges are not judged, only "
        "timing and sight",
        remedy="none is needed; if the line is wrong, state en or zh as the locale of speech",
    ),
    "texts": IssueHelp(
        line="texts: some that came were too long",
        meaning="speech of over 2,000 characters, or another text of over 32,000, was cut; `texts_cut` counts them",
        remedy="let the publisher send one utterance a message",
    ),
    "records": IssueHelp(
        line="monitor: a record was left out",
        meaning="a cue raised an error, which is a defect of Tactful",
        remedy="report it with the node's log",
    ),
    "clocks": IssueHelp(
        line="clocks: SOURCE is stamped SECONDS ahead of SOURCE",
        meaning="the machines that stamp sound, pictures and the robot's speech have different clocks; timing raises "
        "no flag, and what is flagged meanwhile is marked late",
        remedy=f"synchronise the clocks (chrony); for up to 2 s, run {PROGRAM} calibrate sensors",
    ),
    "late": IssueHelp(
        line="monitor: a record came too late for any window",
        meaning="an utterance, a presence or a frame arrived so late that nothing is made of it",
        remedy="read the status of the node that published it, or synchronise the clocks",
    ),
    "encoder": IssueHelp(
        line="sentence encoder: it is being loaded, or cannot be loaded",
        meaning="the encoder is being loaded, or cannot be loaded",
        remedy=f"wait a few seconds; where it failed, run {PROGRAM} doctor",
    ),
    "files": IssueHelp(
        line="selector: FILE ...",
        meaning="the skills or house rules became unusable while they were changed; the earlier ones stay in use",
        remedy="mend the file, and set the parameter again",
    ),
    "selector": IssueHelp(
        line="selector: a decision failed",
        meaning="a request raised an error, and was answered as failed",
        remedy="report it with the node's log",
    ),
    "bag": IssueHelp(
        line="BAG: ...",
        meaning="the bag cannot be read or written",
        remedy=f"mend what the line names; {PROGRAM} bag recover makes a valid bag of a damaged one",
    ),
    "study_log": IssueHelp(
        line="study log: ...",
        meaning="the disk does not take the log's records; they wait in memory, and the monitor goes on",
        remedy="free some room, or mend what the line names; the log tries again by itself",
    ),
    "study_log_gap": IssueHelp(
        line="study log: FOLDER lacks N records ...",
        meaning="the log's folder was removed or replaced, or too much waited for the disk; the log holds the count",
        remedy="take the session as incomplete, or log its bag again",
    ),
    "study_log_entry": IssueHelp(
        line="study log: a record was refused",
        meaning="one record can never be written, and is counted in study_log_refused",
        remedy="report it with the line",
    ),
}
