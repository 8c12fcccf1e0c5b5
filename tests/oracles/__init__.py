"""Slow, readable reference implementations of the kernels, from docs/reference/rules.md, which share no code."""
