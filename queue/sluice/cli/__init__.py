"""See ARCHITECTURE.md for what belongs in this package."""
