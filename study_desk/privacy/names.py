"""Find names in text: whole, and by their parts, of which some are ordinary words too."""

import re
from collections.abc import Iterable, Iterator

# Parts of names that people say all the time: frequent English words, and particles of names. Such a part counts as a
# name only where it is capitalised within a sentence, after a title, or as an address: "ask Rose", "Mr. Brown",
# "Will, look". A rare word (a smith, a cooper, a lily) is no loss where it goes, so it counts everywhere.
COMMON_WORDS = frozenset(
    """
    a al all am an and angel any april art as at august autumn baker bank banks be bear bell best big bill bird
    black blue book box bright brown bush but by can car case cash chance chase church coin cold cook cross dark
    dawn day de dean dear deep deer del della den der di do dong dos down duke earl early east easter el english
    even ever fair faith farmer field fields fine fish flower flowers for forest fox frank free french friend frost
    gentle german ginger give glass go gold golden good grace grant great green grey guy had hall hand happy hard
    harmony has have hay head heart her here high hill him his hold holiday honest honey hope hot house how hunt
    hunter i if in iron is it joy judge july june just justice keep key kind king knight la lake lamb land lane late
    law lay le leaf leave light like little long look lord lot love low luck mad main major make man many march mark
    market may me meadow mean mercy mile miles mill mine miss monday money moon more moss most much my near new next
    nice night no noble north nose not now nurse of oh old on one or out over page park parks pat path patience pay
    peace pearl penny pepper piece play pleasant point pole pond pool poor pope post power price pride prince prize
    proper queen quick rain ready red rich ride right ring rise river road rock room root rose round row rule run
    rush safe sale salt sand say school sea see seven sharp she ship shoe shop short silver sing singer sit sky slow
    small smart snow so son song sound south speed spring square staff star start stay steel still stone storm story
    street strong sugar summer sun sunday sunny sure sweet swift table tall tea ten than that the then there they
    thing this to top town tree true trust turn two under up us van very view voice von wait walk walker wall war
    warm was watch water waters way we weather well west wet wheel white who why wild will wills win wind wine
    winter wise wish with wolf woman wonder wood woods word work world worth y yes yet you young your zu zum
    """.split()  # noqa: SIM905 as a list, one a line
)
_TITLES = {"dr", "herr", "ii", "iii", "jr", "madam", "miss", "mme", "mr", "mrs", "ms", "prof", "professor", "sir", "sr"}
_PART = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
# Up to so many letters, a part counts only with a capital: li and ali are words somewhere.
_SHORT = 3
_AMID_SENTENCE = (
    "(?:" + "|".join(rf"(?<={before} )" for before in ("[\\w,;:]", r"Mr\.", r"Ms\.", r"Dr\.", r"Mrs\.")) + ")"
)


def name_parts(names: Iterable[str]) -> Iterator[str]:
    """Yield the parts of names that count as names too: not titles, initials or numbers."""
    whole = {name.strip().casefold() for name in names}
    seen: set[str] = set()
    for name in names:
        for part in _PART.findall(name):
            key = part.casefold()
            if len(part) > 1 and not part.isdigit() and key not in _TITLES | whole | seen:
                seen.add(key)
                yield part


def is_common(part: str) -> bool:
    """Whether a part of a name is an ordinary word as well."""
    return part.casefold() in COMMON_WORDS


def name_pattern(name: str) -> str:
    """Return a pattern for a whole name, as whole words where its script has words."""
    spaced = name.isascii() or any(c.islower() or c.isupper() for c in name)
    return rf"(?<!\w){re.escape(name)}(?!\w)" if spaced else re.escape(name)


def part_pattern(part: str) -> str:
    """Return a pattern for one part of a name, which itself says in which case it counts."""
    capital = part[:1].upper() + part[1:]
    if is_common(part):
        word = rf"(?-i:{re.escape(capital)})"
        return rf"(?:{_AMID_SENTENCE}{word}(?!\w)|(?<!\w){word}(?=[,!?]))"
    if len(part) <= _SHORT and part.upper() != part.lower():
        return rf"(?<!\w)(?-i:{re.escape(capital)}|{re.escape(part.upper())})(?!\w)"
    return rf"(?i:{name_pattern(part)})"
