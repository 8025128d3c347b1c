"""Format tables of figures as Markdown, CSV and LaTeX."""

import csv
import io
from collections.abc import Callable, Sequence

Rows = Sequence[Sequence[str]]


def markdown(head: Sequence[str], rows: Rows) -> str:
    """Format rows as a Markdown table, with pipes escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def comma_separated(head: Sequence[str], rows: Rows) -> str:
    """Format rows as CSV, without a final line break."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([head, *rows])
    return text.getvalue().rstrip("\n")


def latex(head: Sequence[str], rows: Rows) -> str:
    """Format rows as a LaTeX tabular, the first column to the left."""
    body = "\n".join(f"{' & '.join(map(_escaped, row))} \\\\" for row in rows)
    columns = "l" + "r" * (len(head) - 1)
    top = f"{' & '.join(map(_escaped, head))} \\\\"
    return f"\\begin{{tabular}}{{{columns}}}\n\\hline\n{top}\n\\hline\n{body}\n\\hline\n\\end{{tabular}}"


FORMATS: dict[str, Callable[[Sequence[str], Rows], str]] = {
    "markdown": markdown,
    "csv": comma_separated,
    "latex": latex,
}


# Special characters of LaTeX, and their escapes.
_LATEX = {letter: f"\\{letter}" for letter in "&%$#_{}"} | {
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    "\\": "\\textbackslash{}",
}


def _escaped(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text)
