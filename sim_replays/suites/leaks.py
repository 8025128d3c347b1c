"""Find prompts that hold the right option beside the options themselves."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from sim_replays.items.run_config import RunItem
from sim_replays.items.target import Target

_FEWEST_WORDS = 3  # a shorter option, such as a label, stands in many sentences


def leaked_answers(items: Iterable[RunItem], targets: Mapping[tuple[str, str], Target]) -> list[str]:
    """Name the questions whose scene, speech or question holds the words of the right option more than of another."""
    leaks = []
    for item in items:
        spoken = " ".join(utterance.text for utterance in item.utterances)
        for query in item.queries:
            target, order = targets.get((item.item or item.id, query.task)), item.orders.get(query.query_id, ())
            offered = query.justifications or query.options
            if target is None or len(offered) != len(order) or target.words == query.options:
                continue
            right = [place for place, at in enumerate(order) if at in target.right]
            if holds_right(f"{query.question} {query.viewpoint.description} {spoken}", offered, right):
                leaks.append(query.query_id)
    return leaks


def holds_right(text: str, options: Sequence[str], right: Collection[int]) -> bool:
    """Whether a text holds each right option more often than any wrong one."""
    plain, worded = _words(text), [_words(option) for option in options]
    # A whole prompt holds each option, and an option may stand within another.
    listed = "".join(worded) if all(option in plain for option in worded) else ""
    counts = [
        plain.count(option) - listed.count(option) if len(option.split()) >= _FEWEST_WORDS else 0 for option in worded
    ]
    rights, wrongs = ([count for at, count in enumerate(counts) if (at in right) is side] for side in (True, False))
    return bool(rights and wrongs) and min(rights) > max(wrongs)


def _words(text: str) -> str:
    words = re.findall(r"\w+", text.casefold())
    return f" {' '.join(words)} "
