"""The open prices that ship with the package."""
