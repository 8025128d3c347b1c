"""A check for prompts that hold the right option beside the options themselves."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from sim_replays.items.run_config import RunItem
from sim_replays.items.target import Key, Target

_MIN_WORDS = 3  # A shorter option, such as a label, stands in many sentences.


def find_leaks(items: Iterable[RunItem], targets: Mapping[Key, Target]) -> list[str]:
    """Return the ids of questions whose scene, speech or text holds the right option more than another one."""
    leaks = []
    for item in items:
        speech = " ".join(utterance.text for utterance in item.utterances)
        for query in item.queries:
            target = targets.get((item.item or item.id, query.task))
            order = item.orders.get(query.query_id, ())
            options = query.justifications or query.options
            if target is None or len(options) != len(order) or target.words == query.options:
                continue
            right = [index for index, dataset_index in enumerate(order) if dataset_index in target.right]
            if holds_right_option(f"{query.question} {query.viewpoint.description} {speech}", options, right):
                leaks.append(query.query_id)
    return leaks


def holds_right_option(text: str, options: Sequence[str], right: Collection[int]) -> bool:
    """Return whether a text holds each right option more often than any wrong one."""
    words = _normalize_words(text)
    words_of_options = [_normalize_words(option) for option in options]
    # A whole prompt holds each option, and an option may stand within another one.
    is_prompt = all(option in words for option in words_of_options)
    list_of_options = "".join(words_of_options) if is_prompt else ""
    right_counts: list[int] = []
    wrong_counts: list[int] = []
    for index, option in enumerate(words_of_options):
        is_long = len(option.split()) >= _MIN_WORDS
        count = words.count(option) - list_of_options.count(option) if is_long else 0
        (right_counts if index in right else wrong_counts).append(count)
    return bool(right_counts and wrong_counts) and min(right_counts) > max(wrong_counts)


def _normalize_words(text: str) -> str:
    """Return the words in lower case, with a space around each."""
    words = re.findall(r"\w+", text.casefold())
    return f" {' '.join(words)} "
