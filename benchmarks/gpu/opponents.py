"""Opponents of a league, and rating matches, with their networks on the GPU and on the CPU."""

from __future__ import annotations

import contextlib
import time
from functools import partial

import numpy as np

from benchmarks.gpu.setting import Setting, alternatives
from benchmarks.gpu.training import Trainer
from benchmarks.machine import cores
from echelon_env import BattleEngine
from echelon_env.config.scenario import make_config
from echelon_env.evaluate.matches import play
from echelon_env.evaluate.seeds import evaluation_seed
from echelon_env.networks.config import NetworkConfig
from echelon_train.checkpoints.players import network_player
from echelon_train.config.files import load_run_config
from echelon_train.opponents.pool import OpponentPool
from echelon_train.policy import BattlePolicy, build_policy

DECISIONS = 60
"""Of a match, or of the battles of one, that are timed."""


def opponents(setting: Setting) -> None:
    """Measure rollouts against 0, 1 and 8 policies, and matches between two policies."""
    battles = alternatives(setting, 2, 512)
    device, cases = str(setting.device), {}
    for members in alternatives(setting, (0, 2), (0, 1, 8)):
        against = {0: "novice", 1: "a policy"}.get(members, f"{members} policies")
        cases[f"a rollout of skirmish, {battles} battles, against {against}"] = partial(
            rollout, setting, members, battles, device
        )
    cases |= {
        f"matches of skirmish, {battles} battles, torch on the {name}": partial(match, setting, battles, where)
        for name, where in {"GPU": device, "CPU": "cpu"}.items()
        if not (setting.small and name == "GPU")
    }
    cases["matches of skirmish, 64 battles, machine code on a core"] = partial(
        match_without_torch, alternatives(setting, 2, 64), alternatives(setting, 4, DECISIONS)
    )
    setting.cases(cases)


def rollout(setting: Setting, members: int, battles: int, device: str) -> dict[str, float]:
    """Seconds and samples per second of collecting; the learner's network and the opponents' are on the device."""
    threads = min(cores(), battles)
    config = load_run_config(
        "skirmish", {"battles": str(battles), "maps": "16", "threads": str(threads), "opponent": "novice"}
    )
    pool = None
    if members:
        pool = OpponentPool(
            config.battle,
            lambda: dict.fromkeys(map(str, range(members)), 1.0),
            lambda name: _policy(name, config.network),
            device=device,
            num_threads=threads,
        )
    trainer = Trainer(setting, config, opponent=pool)
    try:
        trainer.collect()
        rounds = alternatives(setting, 1, 3)
        began = setting.clock()
        for _ in range(rounds):
            trainer.collect()
        seconds = (setting.clock() - began) / rounds
        return {"collecting, s": seconds, "samples/s": trainer.samples / seconds}
    finally:
        trainer.close()


def match(setting: Setting, battles: int, device: str) -> dict[str, float]:
    """Decisions of mechs per second, dead ones included, of two policies that play each other."""
    threads = min(cores(), battles)
    engine = BattleEngine("skirmish", battles, threads, maps=16, dead_agents="persist")
    with contextlib.closing(engine):
        sides = [
            OpponentPool(engine.config, partial(dict, {name: 1.0}), _policy, device=device, num_threads=threads)
            for name in ("0", "1")
        ]
        team, observations = len(engine.config.blue), engine.reset(np.arange(battles))
        for side in sides:
            side.reset(np.ones(battles * team, np.bool_))
        decisions = alternatives(setting, 4, DECISIONS)
        clock = setting.clock()
        for step in range(decisions + 5):
            if step == 5:  # the first ones warm up
                clock = setting.clock()
            actions = [
                side.act(observations[:, part].reshape(battles * team, -1)).reshape(battles, team, -1)
                for side, part in zip(sides, (slice(team), slice(team, None)), strict=True)
            ]
            observations, *_ = engine.step(np.concatenate(actions, 1))
        return {"decisions/s": decisions * battles * engine.num_mechs / (setting.clock() - clock)}


def match_without_torch(battles: int, decisions: int) -> dict[str, float]:
    """The same of one core, as a league plays its matches: one on every core."""
    config = make_config("skirmish", dead_agents="persist")
    first, second = (network_player(name, _policy(name)) for name in ("0", "1"))
    moments = play(first, second, config, [evaluation_seed(0, number) for number in range(battles)])
    next(moments)
    began, count = time.perf_counter(), 0
    for _ in moments:
        count += 1
        if count == decisions:
            break
    seconds = time.perf_counter() - began
    moments.close()
    return {"decisions/s": count * battles * config.num_mechs / seconds}


def _policy(name: str, network: NetworkConfig | None = None) -> BattlePolicy:
    policy = build_policy(network or NetworkConfig(), int(name))
    policy.set_training_mode(False)
    return policy
