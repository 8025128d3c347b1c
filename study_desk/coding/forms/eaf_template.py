"""Write an EAF to code in: speech, media, and an empty tier for each code of the codebook."""

from collections.abc import Iterable
from pathlib import Path

from norm_core.records.flag import Polarity, Severity
from norm_core.records.record import record
from study_desk.coding.forms.eaf import (
    CODER,
    ORIGIN,
    SESSION,
    STUDY,
    add_utterances,
    add_vocabulary,
    link_media,
    new_document,
    save,
)
from study_desk.coding.forms.sheet import Sheet, tiers
from study_desk.coding.labels import one_line
from study_desk.study.study_file import Code

_VOCABULARY = "severity"
_NO_DATE = "1970-01-01T00:00:00Z"  # the day of a session is nothing to code by


@record
class MediaLink:
    """A video or sound file, with its path from the folder of the form; the session begins `offset_s` into it."""

    path: Path
    relative: str
    offset_s: float = 0.0


def write_eaf_template(
    path: Path, sheet: Sheet, media: Iterable[MediaLink], codebook: Iterable[Code], *, study: str, coder: str
) -> None:
    """Write the speech of a sheet, and empty tiers. The value of an error is its severity, of a competence a comment.

    Raises ValueError if the sheet holds labels, which a coder must not see.
    """
    if sheet.labels:
        raise ValueError(f"{sheet.session}: the sheet holds labels; a coder codes without seeing any")
    document = new_document(coder, _NO_DATE)
    add_vocabulary(document, _VOCABULARY, "how severe the error is")
    for severity in Severity:
        document.add_cv_entry(_VOCABULARY, f"cve_{severity.value}", [(severity.value, "und", "")])
    for polarity in Polarity:
        document.add_linguistic_type(polarity.value)
    document.linguistic_types[Polarity.ERROR.value]["CONTROLLED_VOCABULARY_REF"] = _VOCABULARY
    for link in media:
        link_media(document, f"./{link.relative}", f"./{link.relative}", offset_s=link.offset_s)
    stated = {ORIGIN: sheet.origin_ns, SESSION: one_line(sheet.session), STUDY: one_line(study), CODER: coder}
    for name, value in stated.items():
        document.add_property(name, value)
    for tier, spans in tiers(sheet).items():
        add_utterances(document, tier, spans)
    for code in codebook:
        document.add_tier(one_line(code.name), code.polarity.value, ann=coder)
    save(document, path)
