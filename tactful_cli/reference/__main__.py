"""Write the generated pages in docs from the code: python -m tactful_cli.reference."""

from tactful_cli.extras import ROOT
from tactful_cli.reference.pages import PAGES

for name, generate in PAGES.items():
    (ROOT / "docs/reference" / name).write_text(generate(), encoding="utf-8")
