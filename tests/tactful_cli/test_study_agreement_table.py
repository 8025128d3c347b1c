"""The tables of agreement: a short summary, and columns that are what the legend says."""

from rich.table import Table

from norm_core.records.flag import Attribute, Polarity
from norm_core.runtime.time import s_to_ns
from study_desk.coding.agreement import Agreement, measure_agreement
from study_desk.coding.labels import CodedSession
from study_desk.log.schema import Label
from tactful_cli.study.forms import every_table, summary


def found() -> Agreement:
    """Two coders, two conditions: of three events each, one starts 0.8 s apart and one is of another attribute."""

    def label(coder: str, start_s: float, attribute: Attribute) -> Label:
        start_ns = s_to_ns(start_s)
        return Label(start_ns=start_ns, end_ns=start_ns, polarity=Polarity.ERROR, attribute=attribute, coder=coder)

    ana = [(10, Attribute.ENGAGEMENT), (20, Attribute.ENGAGEMENT), (30, Attribute.EMOTIONS)]
    bo = [(10, Attribute.ENGAGEMENT), (20.8, Attribute.ENGAGEMENT), (30, Attribute.USER_INTENTION)]
    sessions = [
        CodedSession(
            name=name,
            start_ns=0,
            end_ns=s_to_ns(60),
            condition=name,
            labels={who: tuple(label(who, *each) for each in of) for who, of in (("Ana", ana), ("Bo", bo))},
        )
        for name in ("quiet", "chatty")
    ]
    return measure_agreement(sessions, resamples=5)


def columns(table: Table) -> dict[str, list[str]]:
    return {str(column.header): [str(cell) for cell in column.cells] for column in table.columns}


def test_n_counts_by_the_tolerance_that_its_column_names() -> None:
    agreement = found()
    _, short = summary(agreement)
    every = columns(list(every_table(agreement))[1])
    # In each of two sessions, two events match within 1 s, one of them within 0.5 s. The third counts as two.
    assert columns(short)["n\n1 s"] == ["8", "2", "4", "2"]
    assert every["n\n0.5 s"] == ["10", "2", "6", "2"]
    assert columns(short)["coders"] == ["Ana, Bo", "", "", ""]
    assert columns(short)["label"] == ["all", "error emotions", "error engagement", "error user intention"]
