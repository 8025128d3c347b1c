"""Options in a prompt: one letter each, so that one token is an answer."""

from string import ascii_lowercase, ascii_uppercase

from norm_core.engines.prompt import neutralize_markup

OPTION_LETTERS = ascii_uppercase + ascii_lowercase


_LETTER_ALONE = "Answer with the letter of one option and nothing else."
_REASONS_FIRST = "Reason step by step first. Then end with one line: Answer: and the letter of one option."


def letter_options(options: tuple[str, ...], *, reasons_first: bool = False) -> str:
    """Return the options as lines and the request for one letter; at most len(LETTERS) options."""
    texts = (" ".join(neutralize_markup(option).split()) for option in options)  # no option can look like two
    lines = [f"{letter}. {text}" for letter, text in zip(OPTION_LETTERS, texts, strict=False)]
    return "\n".join([*lines, _REASONS_FIRST if reasons_first else _LETTER_ALONE])
