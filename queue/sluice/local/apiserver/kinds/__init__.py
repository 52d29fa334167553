"""The built-in kinds: what they look like in tables, how they default, what they refuse."""
