"""Let the ten generators of a message package parse each interface once; each parses all of them by itself."""

import hashlib
import os
import pickle
import sys
from pathlib import Path
from typing import Any

if any("/rosidl_" in argument for argument in sys.orig_argv):
    from rosidl_parser import parser

    parse_anew = parser.parse_idl_string

    def parse_once(text: str, png_file: str | None = None) -> Any:
        """Read what another generator of this build parsed, or parse it."""
        path = Path(os.environ["PARSED_INTERFACES"], hashlib.sha256(text.encode()).hexdigest())
        if path.is_file():
            return pickle.loads(path.read_bytes())
        content = parse_anew(text, png_file=png_file)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}")
        part.write_bytes(pickle.dumps(content))
        part.replace(path)
        return content

    parser.parse_idl_string = parse_once
