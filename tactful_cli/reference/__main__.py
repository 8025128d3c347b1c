"""Write the generated pages and sections in docs from the code: python -m tactful_cli.reference."""

from pathlib import Path

from tactful_cli.reference.pages import PAGES, SECTIONS, with_last_section

DOCS = Path(__file__).resolve().parents[2] / "docs"

for name, generate in PAGES.items():
    (DOCS / "reference" / name).write_text(generate(), encoding="utf-8")
for name, generate in SECTIONS.items():
    page = DOCS / name
    page.write_text(with_last_section(page.read_text(encoding="utf-8"), generate()), encoding="utf-8")
