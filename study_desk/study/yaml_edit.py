"""Set or remove one value in the text of a YAML file, and leave comments and layout as they are."""

from typing import Any

import yaml

from norm_core.runtime.config import ConfigError, parse_yaml

_SOURCE = "the file"


def set_in_yaml(text: str, keys: tuple[str, ...], value: Any) -> str:
    """Return the text with a value set under nested keys. New keys go to the end of their mapping, on one line.

    Raises ConfigError if the text has a layout in which the value cannot be placed.
    """
    plain = parse_yaml(text, _SOURCE) or {}
    if not isinstance(plain, dict):
        raise ConfigError(f"{_SOURCE}: holds no keys; begin with one, such as study: NAME")
    node, depth = yaml.compose(text, Loader=yaml.SafeLoader), 0  # recurses, and the text is now known to be shallow
    before: yaml.MappingNode | None = None
    while depth < len(keys) and isinstance(node, yaml.MappingNode):
        found = next((inner for key, inner in node.value if key.value == keys[depth]), None)
        if found is None:
            break
        before, node, depth = node, found, depth + 1
    rest = keys[depth:]
    if rest and isinstance(node, yaml.MappingNode) and node.value and not node.flow_style:
        new = _with_line(text, node, rest[0], _nested(rest[1:], value))
    elif node is None or before is None:
        new = text
    elif rest and not before.flow_style and not parse_yaml(text[node.start_mark.index : node.end_mark.index], _SOURCE):
        indent = " " * (before.start_mark.column + 2)
        line = f"\n{indent}{_flow(rest[0])}: {_flow(_nested(rest[1:], value))}"
        new = text[: node.start_mark.index].rstrip(" ") + line + text[node.end_mark.index :]
    else:
        old = parse_yaml(text[node.start_mark.index : node.end_mark.index], _SOURCE) if rest else None
        merged = _merged(old if isinstance(old, dict) else {}, rest, value) if rest else value
        new = _replaced(text, node, _flow(merged))
    wanted = _merged(plain, keys, parse_yaml(_flow(value), _SOURCE))  # a date becomes its text
    try:
        same = parse_yaml(new, _SOURCE) == wanted
    except ConfigError:
        same = False
    if not same:
        raise ConfigError(f"{'.'.join(keys)}: cannot be set in this layout; write there: {_flow(value)}")
    return new


def remove_from_yaml(text: str, keys: tuple[str, ...]) -> str:
    """Return the text without a key, and without the lines of its value. Raises ConfigError as set_in_yaml does."""
    parent: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    wanted = inner = parse_yaml(text, _SOURCE)
    for key in keys[:-1]:
        parent = next(value for name, value in parent.value if name.value == key)
        inner = inner[key]
    del inner[keys[-1]]
    if parent.flow_style:
        return set_in_yaml(text, keys[:-1], inner)
    key_node, value = next(pair for pair in parent.value if pair[0].value == keys[-1])
    column = key_node.start_mark.column
    line_end = text.find("\n", _end_of(value) - 1)
    before, after = text[: key_node.start_mark.index - column], text[line_end + 1 :] if line_end >= 0 else ""
    new = before + ("" if inner else " " * column + "{}\n") + after
    if parse_yaml(new, _SOURCE) != wanted:
        raise ConfigError(f"{'.'.join(keys)}: cannot be removed in this layout; delete it there")
    return new


def _with_line(text: str, mapping: yaml.MappingNode, key: str, value: Any) -> str:
    """Add a line after the last value of a block mapping."""
    end = _end_of(mapping)
    if not text[:end].endswith("\n"):
        line_end = text.find("\n", end)
        text, end = (text, line_end + 1) if line_end >= 0 else (text + "\n", len(text) + 1)
    indent = " " * mapping.start_mark.column
    return f"{text[:end]}{indent}{_flow(key)}: {_flow(value)}\n{text[end:]}"


def _end_of(last: yaml.Node) -> int:
    """Return where a value ends; the mark of a block ends after the comments that follow it."""
    while isinstance(last, yaml.CollectionNode) and last.value and not last.flow_style:
        last = last.value[-1][1] if isinstance(last, yaml.MappingNode) else last.value[-1]
    return int(last.end_mark.index)


def _replaced(text: str, node: yaml.Node, value: str) -> str:
    start, end = node.start_mark.index, node.end_mark.index
    space = " " if text[:start].endswith(":") else ""
    newline = "\n" if text[start:end].endswith("\n") else ""
    return f"{text[:start]}{space}{value}{newline}{text[end:]}"


def _flow(value: Any) -> str:
    """Write a value on one line."""
    text: str = yaml.safe_dump(value, default_flow_style=True, width=10**6, sort_keys=False, allow_unicode=True)
    return text.removesuffix("...\n").strip()


def _nested(keys: tuple[str, ...], value: Any) -> Any:
    return {keys[0]: _nested(keys[1:], value)} if keys else value


def _merged(plain: dict[str, Any], keys: tuple[str, ...], value: Any) -> Any:
    if not keys:
        return value
    inner = plain.get(keys[0])
    return plain | {keys[0]: _merged(inner if isinstance(inner, dict) else {}, keys[1:], value)}
