"""The Python reference page: the public names of each package, from their signatures and docstrings."""

import ast
import inspect
from collections.abc import Iterator
from dataclasses import is_dataclass
from enum import Enum
from importlib import import_module
from textwrap import dedent
from typing import Any

from pydantic import BaseModel

from norm_core.runtime.config import Config

PACKAGES = (
    "norm_core",
    "norm_core.engines",
    "norm_core.models",
    "norm_core.bags",
    "norm_core.evaluation",
    "norm_monitor",
    "action_selector",
    "study_desk",
    "sim_replays",
)

OURS = {package.split(".")[0] for package in PACKAGES}

HEAD = """# The Python API

`./tactful api` makes this page from the packages; do not edit it by hand. Import each name from the package of its
section: `from norm_monitor import Monitor`. Modules below these packages are private and may change.
"""


def page() -> str:
    """Return the page as Markdown."""
    return HEAD + "".join(f"{line}\n" for package in PACKAGES for line in _section(package))


def _section(package: str) -> Iterator[str]:
    face = import_module(package)
    yield from ("", f"## {package}", "", inspect.getdoc(face) or "")
    for name in face.__all__:
        yield from ("", f"### {name}", *_entry(getattr(face, name)))


def _entry(value: Any) -> Iterator[str]:
    if not inspect.isclass(value):
        yield from ("", "```python", _signature(_tree(value)), "```", *_description(_tree(value)))
        return
    parents = [_tree(parent) for parent in value.__mro__ if parent.__module__.split(".")[0] in OURS]
    if value is not Config:
        parents = [tree for tree in parents if tree.name != "Config"]
    methods = {method.name: method for tree in reversed(parents) for method in _functions(tree)}
    if "__init__" in methods:
        yield from ("", "```python", _signature(methods["__init__"], value.__name__), "```")
    yield from _description(_tree(value))
    yield from _description(methods["__init__"]) if "__init__" in methods else ()
    if issubclass(value, Enum):
        yield from ("", ", ".join(f"`{member.name}`" for member in value))
    elif issubclass(value, BaseModel) or is_dataclass(value):
        yield from _field_table(value)
    public = [method for name, method in methods.items() if not name.startswith("_")]
    yield from [""] if public else []
    for method in public:
        about = (ast.get_docstring(method) or "").split("\n")[0]
        yield f"- `{_signature(method)}`" + (f": {about}" if about else "")


def _description(tree: Any) -> Iterator[str]:
    if text := ast.get_docstring(tree):
        yield from ("", text)


def _tree(value: Any) -> Any:
    """Return the syntax tree of a class or function: it spells types and defaults alike on every Python."""
    return ast.parse(dedent(inspect.getsource(value))).body[0]


def _functions(tree: ast.ClassDef) -> Iterator[ast.FunctionDef]:
    return (node for node in tree.body if isinstance(node, ast.FunctionDef))


def _signature(function: ast.FunctionDef, name: str = "") -> str:
    if any(isinstance(wrapper, ast.Name) and wrapper.id == "property" for wrapper in function.decorator_list):
        return f"{function.name}: {ast.unparse(function.returns)}" if function.returns else function.name
    for kind in (function.args.posonlyargs, function.args.args):
        kind[:] = [argument for argument in kind if argument.arg not in {"self", "cls"}]
    returned = f" -> {ast.unparse(function.returns)}" if function.returns and not name else ""
    return f"{name or function.name}({ast.unparse(function.args)}){returned}"


def _field_table(cls: type) -> Iterator[str]:
    rows: dict[str, str] = {}
    for parent in reversed(cls.__mro__):
        if parent.__module__.split(".")[0] in OURS:
            rows |= _field_rows(parent)
    if rows:
        yield from ("", "| field | type | default | |", "|---|---|---|---|", *rows.values())


def _field_rows(cls: type) -> dict[str, str]:
    lines = dedent(inspect.getsource(cls)).splitlines()
    described = cls.model_fields if issubclass(cls, BaseModel) else {}
    rows = {}
    for node in _tree(cls).body:
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        name, kind = node.target.id, ast.unparse(node.annotation)
        if name.startswith("_") or kind.startswith("ClassVar"):
            continue
        about = described[name].description if name in described else None
        about = about or lines[(node.end_lineno or 1) - 1].partition("  # ")[2]
        default = _default(node.value)
        cells = (f"`{name}`", f"`{kind}`", f"`{default}`" if default else "required", about)
        rows[name] = f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
    return rows


def _default(value: ast.expr | None) -> str:
    if not isinstance(value, ast.Call) or ast.unparse(value.func) not in {"Field", "field"}:
        return ast.unparse(value) if value else ""
    given = {keyword.arg: ast.unparse(keyword.value) for keyword in value.keywords}
    if "default_factory" in given:
        return f"{given['default_factory']}()"
    return ast.unparse(value.args[0]) if value.args else given.get("default", "")
