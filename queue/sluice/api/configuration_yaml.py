"""YAML text to JSON values, refusing duplicate keys with their path. Pure.

Plain YAML readers take the last of two equal keys silently. Used by ``sluice.api.configuration``.
"""

from __future__ import annotations

from typing import Any

import yaml

from sluice.api.errors import ConfigError


def read_mapping(text: str) -> dict[str, Any]:
    """Return the mapping of a YAML (or JSON) document, JSON nulls left out.

    Raises:
        ConfigError: It is no YAML, empty, more than one document, no mapping, or has a duplicate
            or non-text key.
    """
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            raise ConfigError("the file is empty; it needs at least apiVersion and kind")
        if not isinstance(node, yaml.MappingNode):
            raise ConfigError("the file must be a mapping that starts with apiVersion and kind")
        problems: list[str] = []
        _check_keys(node, "", problems, set())
        if problems:
            raise ConfigError("; ".join(problems))
        value: dict[str, Any] = _without_nulls(loader.construct_document(node))
    except yaml.YAMLError as error:
        text = " ".join(str(error).split())
        raise ConfigError(f"not valid YAML: {text}") from error
    finally:
        loader.dispose()
    return value


def _check_keys(node: yaml.Node, path: str, problems: list[str], seen: set[int]) -> None:
    if id(node) in seen:  # an alias
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for i, item in enumerate(node.value):
            _check_keys(item, f"{path}[{i}]", problems, seen)
    elif isinstance(node, yaml.MappingNode):
        names: set[str] = set()
        for key, value in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else "?"
            at = f"{path}.{name}" if path else name
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                problems.append(f'key of "{path}" on line {line} is no text')
            elif name in names:
                problems.append(f'duplicate field "{at}" on line {line}: keep one of them')
            names.add(name)
            _check_keys(value, at, problems, seen)


def _without_nulls(value: Any) -> Any:
    """Return the value without nulls in mappings: null means absent, as in Kubernetes."""
    if isinstance(value, dict):
        return {str(k): _without_nulls(v) for k, v in value.items() if v is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value
