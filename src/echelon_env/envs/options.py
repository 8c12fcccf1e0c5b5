"""The arguments that all environment classes take, described in one place."""

from __future__ import annotations

import inspect
from typing import TypeVar

Class = TypeVar("Class", bound=type)

MARK = "{options}\n"
"""Where the arguments belong in the docstring of a class."""

OPTIONS = """\
observation
    ``"flat"``: float32 vectors, see `echelon_env.layout.observations`. ``"dict"``: a dict of their streams.
action
    ``"continuous"``: float32 vectors in [-1, 1], see `layout.actions`. ``"dict"``: an entry for each of their
    blocks. ``"multi_discrete"``: a choice for each part. ``"discrete"``: one choice. Both have masks of the
    choices that are possible now.
mask_in_observation
    Whether observations are dicts of ``"observation"`` and ``"action_mask"``. Only with actions that have masks.
events
    Whether infos hold the events of the last decision.
max_cycles
    Decisions after which all agents are truncated, independent of the battle's own time limit. None: no limit.
maps
    None: every battle has a new map. Otherwise seeds choose maps from a pool that is generated once: the number of
    maps, a directory of recipes, or a `MapPool`.
regenerate
    Number of consecutive battles on the same map.
**overrides
    Fields of the configuration to change.

Raises
------
ConfigError
    For invalid arguments.
"""


def with_options(environment: Class) -> Class:
    """A class whose docstring has the arguments in place of the mark."""
    if environment.__doc__:  # Python leaves it out with -OO
        described = inspect.cleandoc(environment.__doc__)  # Python removes the indentation from 3.13 on
        environment.__doc__ = f"{described}\n".replace(MARK, OPTIONS)
    return environment
