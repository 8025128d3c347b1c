"""Options as a language model reads them: one letter each, so that one token is an answer."""

from string import ascii_lowercase, ascii_uppercase

from norm_core.engines.prompt import neutralize_markup

OPTION_LETTERS = ascii_uppercase + ascii_lowercase


def letter_options(options: tuple[str, ...]) -> str:
    """The options as lines, and the request to answer by a letter alone; for at most len(LETTERS) options."""
    lines = [f"{letter}. {_one_line(option)}" for letter, option in zip(OPTION_LETTERS, options, strict=False)]
    return "\n".join([*lines, "Answer with the letter of one option and nothing else."])


def _one_line(option: str) -> str:
    """An option cannot pretend to be two."""
    return " ".join(neutralize_markup(option).split())
