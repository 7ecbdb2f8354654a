"""Compile a model, and measure what that changes."""
