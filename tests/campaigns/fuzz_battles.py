"""Battles of random configurations with wild actions: ``python tests/campaigns/fuzz_battles.py --minutes 30``.

Every case draws a configuration (refused ones count as such), plays it with actions that are not finite or huge, and
checks: observations and rewards are finite and in their bounds; another number of threads and a restored or pickled
snapshot continue with the same bytes; a damaged snapshot is refused or can be played; an environment in a random format
passes PettingZoo's checker and `support.contract`. Cases run in child processes, so a crash is a finding, too. The exit
status is 1 if there is one. ``--case SEED`` repeats a case.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import pickle
import secrets
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

import echelon_env
from echelon_env import BattleConfig, BattleEngine, ConfigError
from echelon_env.engine.core import NotResetError
from echelon_env.layout.observations import observation_bounds

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from support.contract import check_parallel  # noqa: E402

CASES = 20
"""Of a child process."""

LONGEST = 600
"""Seconds after which a child process hangs."""

CLASSES = ("scout", "light", "medium", "heavy")
SMALL = {"max_steps": 40, "decision_repeat": 20, "terrain.size": 120, "terrain.height": 40}
"""Upper bounds, so that a case takes seconds."""

FORMATS = ("continuous", "dict", "multi_discrete", "discrete")


def random_numbers(rng: np.random.Generator, section: Any, prefix: str = "") -> dict[str, Any]:
    """Overrides of some numbers and switches of a configuration, within their bounds, by keys with dots."""
    changes: dict[str, Any] = {}
    for each in fields(section):
        key, value = prefix + each.name, getattr(section, each.name)
        if each.name in ("catalog", "rewards"):
            continue
        if is_dataclass(value):
            changes |= random_numbers(rng, value, f"{key}.")
        elif isinstance(value, bool):
            if rng.random() < 0.15:
                changes[key] = not value
        elif "low" in each.metadata and rng.random() < 0.15:
            low, high = each.metadata["low"], min(each.metadata["high"], SMALL.get(key, 1e6))
            drawn = rng.choice([low, high, value * 10 ** rng.uniform(-1, 1)], p=[0.15, 0.05, 0.8])
            drawn = float(np.clip(drawn, low, high))
            changes[key] = round(drawn) if isinstance(value, int) else drawn
    return changes


def random_config(rng: np.random.Generator) -> BattleConfig:
    """A configuration of 1 to 12 mechs. Raises ConfigError if what was drawn is invalid."""
    nested: dict[str, Any] = {"terrain": {"size": int(rng.integers(50, 100))}, "max_steps": 40}
    for key, value in random_numbers(rng, BattleConfig()).items():
        *path, name = key.split(".")
        inner = nested
        for part in path:
            inner = inner.setdefault(part, {})
        inner[name] = value
    for team in ("blue", "red"):
        nested[team] = rng.choice(CLASSES, rng.integers(1, 7)).tolist()
    nested |= {
        "observability": str(rng.choice(["partial", "full"])),
        "dead_agents": str(rng.choice(["terminate", "persist"])),
        "time_limit": str(rng.choice(["truncate", "terminate"])),
    }
    return echelon_env.make_config(str(rng.choice(["skirmish", "skirmish-open", "battle"])), **nested)


def valid_config(rng: np.random.Generator) -> BattleConfig:
    """The first configuration that is not refused."""
    while True:
        try:
            return random_config(rng)
        except ConfigError:
            pass


def wild_actions(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Actions of which a tenth is not finite, huge or tiny."""
    actions = rng.uniform(-1.2, 1.2, shape).astype(np.float32)
    wild = rng.random(shape) < 0.1
    actions[wild] = rng.choice(np.float32([np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-45, -0.0]), int(wild.sum()))
    return actions


def check_outputs(engine: BattleEngine) -> None:
    """Observations and rewards have to be finite and within their bounds."""
    low, high = observation_bounds()
    seen = engine.observations
    assert np.isfinite(seen).all() and (seen >= low).all() and (seen <= high).all(), "observations out of bounds"
    assert np.isfinite(engine.out.rewards).all(), "rewards are not finite"
    for team in (0, 1):
        assert np.isfinite(engine.global_state(team)).all(), "the global state is not finite"


def same(first: BattleEngine, second: BattleEngine) -> None:
    """Two engines have to have the same bytes."""
    ours, theirs = first.snapshot(), second.snapshot()
    different = [name for name in ours if ours[name].tobytes() != theirs[name].tobytes()]
    assert not different, f"different bytes in {different}"


def play_battles(rng: np.random.Generator, config: BattleConfig) -> None:
    """Play two engines side by side, one with threads and one that is restored from pickled snapshots."""
    battles = int(rng.integers(1, 4))
    engine, twin = BattleEngine(config, battles, num_threads=int(rng.integers(2, 4))), BattleEngine(config, battles)
    seeds = rng.integers(0, 2**63, battles)
    engine.reset(seeds)
    twin.reset(seeds)
    restored_at = int(rng.integers(30))
    for decision in range(40):
        actions = wild_actions(rng, (battles, engine.num_mechs, engine.action_dim))
        engine.step(actions)
        twin.step(actions)
        check_outputs(engine)
        if decision == restored_at:
            snapshot = pickle.loads(pickle.dumps(engine.snapshot()))
            twin.step(actions)
            twin.restore(snapshot)
    same(engine, twin)
    play_damaged(rng, twin)
    engine.close()
    twin.close()


def play_damaged(rng: np.random.Generator, engine: BattleEngine) -> None:
    """A snapshot with random bytes has to be refused or played; one of battles not reset yet, at the first step."""
    sound = engine.snapshot()
    for _ in range(10):
        damaged = {name: array.copy() for name, array in sound.items()}
        names = [name for name, array in damaged.items() if array.nbytes]
        array = damaged[str(rng.choice(names))]
        view = array.reshape(-1).view(np.uint8)
        for _ in range(int(rng.integers(1, 4))):
            view[rng.integers(view.size)] = rng.integers(256)
        with contextlib.suppress(ValueError, NotResetError):  # the latter if `started` was damaged
            engine.restore(damaged)
            for _ in range(3):
                engine.step(wild_actions(rng, (engine.num_battles, engine.num_mechs, engine.action_dim)))
    engine.restore(sound)


def check_environment(rng: np.random.Generator, config: BattleConfig) -> None:
    """An environment in a random format has to keep PettingZoo's rules, also pickled and copied."""
    formats = {"observation": str(rng.choice(["flat", "dict"])), "action": str(rng.choice(FORMATS))}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # with dead_agents "terminate" agents end one by one, as PettingZoo allows
        from pettingzoo.test import parallel_api_test  # warns at its import

        parallel_api_test(echelon_env.parallel_env(config, **formats), num_cycles=60)
        check_parallel(lambda: echelon_env.parallel_env(config, **formats), seed=int(rng.integers(2**31)), max_steps=60)


def run_case(seed: int) -> str:
    """Run a case and return what it was. Raises what it finds."""
    rng = np.random.default_rng(seed)
    try:
        config = random_config(rng)
    except ConfigError:
        return "refused"
    if rng.random() < 0.2:
        check_environment(rng, config)
        return "environment"
    play_battles(rng, config)
    return "engine"


def run_cases(seeds: Sequence[int]) -> int:
    """Run cases in this process, naming each before it starts. Returns 1 at the first finding."""
    if not faulthandler.is_enabled():  # pytest has done it
        faulthandler.enable()
    for seed in seeds:
        print(f"case {seed}", flush=True)
        print(f"was {run_case(seed)}", flush=True)
    return 0


def campaign(minutes: float) -> int:
    """Run cases in child processes until the time is up. Returns 1 if there were findings."""
    end, kinds, findings = time.monotonic() + 60 * minutes, Counter[str](), 0
    while time.monotonic() < end:
        seeds = [str(secrets.randbits(48)) for _ in range(CASES)]
        command = [sys.executable, __file__, "--case", *seeds]
        try:
            child = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST, check=False)
            status, output, errors = child.returncode, child.stdout, child.stderr
        except subprocess.TimeoutExpired as hung:
            status, output, errors = "hung", str(hung.stdout), str(hung.stderr)
        kinds.update(line.removeprefix("was ") for line in output.splitlines() if line.startswith("was "))
        if status:
            findings += 1
            last = [line for line in output.splitlines() if line.startswith("case ")][-1:]
            print(f"FOUND (exit status {status}), {last}:\n{errors[-3000:]}", flush=True)
    print(f"{sum(kinds.values())} cases {dict(kinds)}, {findings} findings")
    return 1 if findings else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a campaign, or single cases."""
    parser = argparse.ArgumentParser(prog="fuzz_battles", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30, help="no cases start later (default: 30)")
    parser.add_argument("--case", type=int, nargs="+", metavar="SEED", help="run these cases in this process")
    options = parser.parse_args(arguments)
    return run_cases(options.case) if options.case else campaign(options.minutes)


if __name__ == "__main__":
    sys.exit(main())
