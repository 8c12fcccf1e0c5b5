"""Leagues whose matches are really played, in short battles."""

import shutil
from pathlib import Path

from echelon_env import BattleConfig
from echelon_env.evaluate import evaluation_seed
from echelon_train.league.playing.jobs import Job
from echelon_train.league.store.registry import League
from train.league.leagues import saved
from train.small import small_battle

SHORT = small_battle("duel-open", 20)
SCENARIO = "short duel"
LONG_MAPS = 16
"""Maps of a match that is still in progress when one of a single map is over."""


def playing_league(folder: Path) -> League:
    """The scripted novice and trivial, and two policies that never trained, otter and heron."""
    league = League.create(folder)
    league.add_scripted("trivial")
    for seed, name in enumerate(("otter", "heron"), 1):
        checkpoint = saved(folder.with_name(f"{folder.name}-{name}"), seed)
        league.add_checkpoint(checkpoint, "past", name)
        shutil.rmtree(checkpoint)
    return league


def job(first: str = "novice", second: str = "otter", *, maps: int = 1, seed: int = 0, **more: object) -> Job:
    config: BattleConfig = more.get("config", SHORT)
    return Job(first, second, config, SCENARIO, tuple(evaluation_seed(seed, index) for index in range(maps)))


def long_job(**more: object) -> Job:
    """A match of many and longer battles."""
    return job("heron", "otter", maps=LONG_MAPS, config=small_battle("duel-open", 200), **more)
