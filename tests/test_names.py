"""One name, one thing: no two public classes of the product share a name."""

import ast
from collections import defaultdict
from pathlib import Path

from tests.test_import_layers import MAY_IMPORT


def test_no_two_public_classes_share_a_name() -> None:
    places: defaultdict[str, list[Path]] = defaultdict(list)
    for folder in MAY_IMPORT:
        for path in folder.rglob("*.py"):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places[node.name].append(path)
    assert len(places) > 300  # the scan itself works
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}
