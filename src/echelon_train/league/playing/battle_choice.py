"""The battle configuration of a league's matches."""

from __future__ import annotations

from echelon_env.config.battle import BattleConfig
from echelon_env.config.scenario import scenarios
from echelon_env.evaluate.stamps import battle_hash
from echelon_train.checkpoints.checkpoint import load_checkpoint
from echelon_train.config.train import battle_config
from echelon_train.league.store.registry import League

_SCENARIO = "skirmish"


def choose_battle(league: League, scenario: str | None) -> tuple[BattleConfig, str]:
    """The battle configuration of a league's matches, and its name.

    It is the named scenario; without a name, that of the last match, what the newest policy was trained on, or else the
    default. Battles are configured as in training. Raises ConfigError for an unknown scenario, LeagueError and
    CheckpointError for a policy that cannot be read.
    """
    for last in league.matches(last=1) if scenario is None else ():
        return last.config, last.match.scenario
    policies = [member.name for member in league.members() if member.weights_sha256 is not None]
    if scenario is None and policies:
        config = load_checkpoint(league.member_policy(policies[-1])).battle
        return config, battle_name(config)
    name = scenario or _SCENARIO
    return battle_config(name), name


def battle_name(config: BattleConfig) -> str:
    """The name of the scenario with a configuration; "training battles" if there is none."""
    wanted = battle_hash(config)
    return next((name for name in scenarios() if battle_hash(battle_config(name)) == wanted), "training battles")
