"""The benchmarks' prompt: a conversation window of about 600 tokens, and eight questions about it."""

from norm_core.engines.prompt import Part, Prompt, Question, Quoted, Text

_TURNS = (
    (
        "visitor",
        "Good morning! I have an appointment with Doctor Meyer at ten, but I am afraid that I am a little early.",
    ),
    ("robot", "Good morning, and welcome. May I have your name, please? Doctor Meyer is still with another patient."),
    (
        "visitor",
        "Of course, it is Anna Lindqvist. Could you tell me where I may wait, and is there some water somewhere?",
    ),
    ("child", "Mama, look, the robot is talking! Can it dance? Ask it whether it can dance, please, please!"),
    ("visitor", "Not now, dear, we are speaking. I am sorry, she is so excited, she has never seen one of you before."),
    (
        "robot",
        "That is quite all right. The waiting room is the second door on the left, and the water stands beside it.",
    ),
)
_ASIDES = "The hall is quiet. A nurse passes with a folder, nods to the visitor, and does not look at the robot."
_CHOSEN = (
    "What should the robot do next?",
    "What would be rude to do now?",
    "What would help the visitor most?",
    "What did the visitor ask for?",
    "What should wait until later?",
    "What would please the child?",
    "What would disturb the others in the hall?",
    "What should the robot have done before?",
)
_DEEDS = (
    "Show the way to the waiting room.",
    "Dance in the middle of the hall.",
    "Offer a glass of water.",
    "Ask the nurse to step aside.",
)


QUESTIONS = tuple(Question(parts=(Text(text=text),), options=_DEEDS) for text in _CHOSEN)
REASONED = Text(text="What should the robot do next? Reason step by step about each option, then name one.")


def window(turns: int = 13) -> Prompt:
    """Make a scene of `turns` turns. 13 turns are about 600 tokens of SmolLM2."""
    said: list[Part] = [Text(text="A robot stands at the reception of a clinic. This was said in the last minute:")]
    for number in range(turns):
        speaker, words = _TURNS[number % len(_TURNS)]
        said += [Quoted(text=words, label=f"{speaker}, second {5 * number}")]
    return Prompt(version="bench-1", parts=(*said, Text(text=_ASIDES)))
