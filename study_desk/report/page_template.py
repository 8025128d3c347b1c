"""Fill a page's template: one HTML file in which only its own script may run."""

import base64
import hashlib
import html
import json
from collections.abc import Sequence
from typing import Any

from norm_core.runtime.data_files import shipped_file

FOLDER = shipped_file("study_desk.report", "page")


def fill_page(template: str, styles: Sequence[str], scripts: Sequence[str], title: str, data: Any) -> str:
    """Render a template of the page folder with its styles, scripts and data.

    A piece `{{name}}` is one of these values, or the file `name.html` that several templates share.
    """
    parts = [_text(f"{name}.js") for name in scripts]
    script = '"use strict";\n(() => {\n' + "\n".join(parts) + "\n})();\n"
    script_hash = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    values = {
        "title": html.escape(title),
        "style": "\n".join(_text(f"{name}.css") for name in styles),
        # The policy allows only this script, whatever the transcript contains.
        "script_hash": f"'sha256-{script_hash}'",
        "script": script,
        "data": _embedded(data),
    }
    pieces = _text(f"{template}.html").split("{{")
    filled = [pieces[0]]
    for piece in pieces[1:]:  # in one pass, so that no value is read as template text
        name, _, rest = piece.partition("}}")
        filled += [values[name] if name in values else _text(f"{name}.html"), rest]
    return "".join(filled)


def _text(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def _embedded(value: Any) -> str:
    """Encode JSON that no text can terminate inside a script element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    text = text.encode("utf-8", "replace").decode()
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
