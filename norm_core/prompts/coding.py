"""The request for a coder's whole answer as JSON, in English and Chinese: coding.yaml."""

from collections.abc import Iterable

from norm_core.engines.prompt import Text
from norm_core.prompts import judge
from norm_core.prompts.texts import prompt_file
from norm_core.records.flag import Attribute

_FILE = prompt_file("coding")
VERSION, _TEXTS = _FILE.version, _FILE.texts


def request(form: str, attributes: Iterable[Attribute], locale: str = "en") -> Text:
    """Ask about the marked part (`unit`), or about each named part (`talk`), with the attributes to choose from."""
    texts, meanings = _TEXTS[locale], dict(zip(Attribute, judge.meanings(locale), strict=True))
    listed = "\n".join(f"- {attribute.value}: {meanings[attribute]}" for attribute in attributes)
    return Text(text=f"{texts[form]}\n{texts['keys'].format(listed)}")
