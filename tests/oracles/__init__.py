"""Slow, readable reference implementations of the kernels, written from docs/game.md without sharing any code."""
