"""Slow, readable twins of the engine's kernels, written from the rules (docs/game.md) and sharing no code with them."""
