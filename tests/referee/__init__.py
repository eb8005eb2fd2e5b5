"""The referee: judges job systems from outside (docs/referee.md)."""
