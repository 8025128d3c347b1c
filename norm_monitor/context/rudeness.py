"""Rude words of the robot to a person, by plain wording or by meaning."""

import re

from norm_monitor.context.meaning import Match, Meaning
from norm_monitor.context.wording import sentences, tokens

_FOOL = r"(stupid|dumb|dumber|idiot|moron|fool|loser|dummy|useless|pathetic|ridiculous)"
# Wordings that are rude whoever hears them. Tokens are joined by single blanks, without punctuation.
_PLAIN = re.compile(
    rf"\b(you are|you're|are you) (really |completely |just |so |such |an? )*{_FOOL}\b"
    rf"|\byour {_FOOL}\b|\b(any|every|only an?|what an?|kind of) (idiot|moron|fool)\b"
    r"|\bshut (up|your mouth)\b|\b(stop|quit) (your )?(whining|moaning|complaining|snivelling|nagging)\b"
    r"|\b(then|well|maybe|so) you should have (listened|paid attention|thought|asked|known)\b"
    r"|\b(not going to|won't|will not|refuse to) repeat myself\b"
    r"|\b(not going to|won't|will not) (say|tell|explain|repeat) (you |it |that |this )+(twice|again|once more)\b"
    r"|\bhow (many times|often) (do|must|should) i (have to )?(say|tell|explain|repeat)\b"
    r"|\bnobody (cares|asked you|wants to hear)\b|\bpull yourself together\b|^get lost\b|\bout of your mind\b"
    r"|\bnot my (problem|job)\b|\b(none of|no) your business\b|\bwast(e|ing) my time\b"
    r"|\bno time for (you|people like)\b|\byou never listen\b|\bdo you (ever|never) listen\b"
    r"|\b(open|use|clean) your (ears|eyes|brain|head)\b|\byou are (holding everybody up|in everybody's way)\b"
    r"|^(maybe )?look (for it|it up) yourself\b"
)


def rudeness(meaning: Meaning, text: str) -> Match | None:
    """Return the rude sentence of a robot's turn, unless the robot apologises in the same turn."""
    match = meaning.match(text, "rude")
    plain = next((part for part in sentences(text) if _PLAIN.search(" ".join(tokens(part)))), None)
    if plain is not None:
        match = Match(sentence=plain, nearness=1.0, threshold=match.threshold)
    return match if match and not meaning.match(text, "apology") else None
