"""A scenario for commands."""

TINY = """
description = "A duel that is over after a few decisions."
blue = ["medium"]
red = ["medium"]
max_steps = 12
[terrain]
size = 48
"""
