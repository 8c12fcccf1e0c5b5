"""Champions: the trained policies that ship with this package, one for duels and one for teams.

Every folder beside this file is a checkpoint, see `echelon_env.networks.checkpoint`. The opponent ``champion`` is one
of them by the size of the larger team. docs/results/champions.md has a card for each.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from echelon_env.config import plugins
from echelon_env.config.battle import BattleConfig
from echelon_env.config.opponent import CHAMPION, Opponent

CHAMPIONS = {"skirmish": 2, "duel": 1}
"""The champions, each with the fewest mechs of the larger team that make it the champion of a battle."""

_FOLDER = Path(__file__).parent


def champion_of(config: BattleConfig) -> str:
    """The name in `CHAMPIONS` of a battle's champion.

    >>> from echelon_env import make_config
    >>> [champion_of(make_config(name)) for name in ("duel-open", "trio", "ambush", "company")]
    ['duel', 'skirmish', 'skirmish', 'skirmish']
    """
    mechs = max(len(config.blue), len(config.red))
    return next(name for name, fewest in CHAMPIONS.items() if mechs >= fewest)


def champion_folder(name: str) -> Path:
    """The checkpoint of one of `CHAMPIONS`."""
    return _FOLDER / name


def policy_path(opponent: Opponent, config: BattleConfig) -> str | None:
    """The path of an opponent's checkpoint in battles of a configuration; None for one that is no trained policy."""
    return str(champion_folder(champion_of(config))) if opponent.name == CHAMPION else opponent.path


@cache
def champion_player(name: str, action_mode: str = "sampled") -> Any:
    """The `echelon_env.evaluate.Player` of one of `CHAMPIONS`. Raises ConfigError as `plugins.checkpoint_player`."""
    return plugins.checkpoint_player(str(champion_folder(name)), 0, action_mode=action_mode)
