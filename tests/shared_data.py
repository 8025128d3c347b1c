"""Real benchmark items and speech, which lie beside the project where they are to be had."""

import os
from pathlib import Path

SHARED_DATA = Path(os.environ.get("TACTFUL_SHARED", Path(__file__).resolve().parents[2] / "shared"), "data")
ABSENT = "../shared/data is not here"
