"""Write the generated pages and sections in docs from the code: python -m tactful_cli.reference."""

from tactful_cli.extras import ROOT
from tactful_cli.reference.pages import PAGES, SECTIONS, with_last_section

for name, generate in PAGES.items():
    (ROOT / "docs/reference" / name).write_text(generate(), encoding="utf-8")
for name, generate in SECTIONS.items():
    page = ROOT / "docs" / name
    page.write_text(with_last_section(page.read_text(encoding="utf-8"), generate()), encoding="utf-8")
