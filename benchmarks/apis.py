"""Live agent-steps per second through every API and size, on one thread."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.recording import BATCH, MAPS, Player, Recording, config_for, play, record
from benchmarks.tables import Table, by_pairs
from benchmarks.timing import Effort, interleaved, spread_note, tell
from echelon_env import BattleBatchEnv, BattleEngine, BattleEnv, BattleVectorEnv, MapPool, make_config, parallel_env
from echelon_env import env as aec_env
from echelon_env.config.battle import BattleConfig

SIZES = {"1 v 1": "duel", "5 v 5": "skirmish", "10 v 10": "battle", "20 v 20": "company"}
ENGINE, BATCH_ENV, VECTOR_ENV, SINGLE_ENV, PARALLEL_ENV, AEC_ENV = (
    f"engine, {BATCH} battles",
    f"batch env, {BATCH}",
    f"Gymnasium vector env, {BATCH}",
    "Gymnasium env, 1",
    "PettingZoo parallel env, 1",
    "PettingZoo AEC, 1",
)
ENGINE_WITH_RESETS = f"engine and resets, {BATCH}"
BETWEEN = f"engine, players between, {BATCH}"
LIVE = "live mechs a battle"

Replay = Callable[[], float]
"""Plays a recording and returns the seconds that it took."""


class Script:
    """A policy that plays what it is given."""

    actions: NDArray[np.float32]

    def reset(self, mask: NDArray[np.bool_]) -> None:
        """Nothing to forget."""

    def act(self, observations: NDArray[np.float32]) -> NDArray[np.float32]:
        """The script's actions, whatever is seen."""
        return self.actions


def engine_replay(recording: Recording, resets: bool = False) -> Replay:
    """The engine's step, and the beginning of new battles on the clock or not."""
    engine = BattleEngine(recording.config, len(recording.seeds), maps=recording.maps)

    def replay() -> float:
        seconds = sum(step + resets * reset for step, reset in play(engine, recording))
        recording.check_end(engine)
        return seconds

    return replay


def thinking_replay(recording: Recording, player: Player) -> Replay:
    """The engine's step while players think between steps, off the clock, and drive its arrays out of the caches."""
    shape = recording.actions.shape
    return lambda: record(recording.config, player, shape[0], recording.maps, shape[1]).engine_seconds


def batch_replay(recording: Recording) -> Replay:
    """Every mech a row; battles restart by themselves, which is timed."""
    envs = BattleBatchEnv(recording.config, len(recording.seeds), maps=recording.maps)

    def steps() -> Any:
        returned: Any = None  # a loop keeps it until the next step returns
        for actions in recording.actions:
            returned = envs.step(actions)
        return returned

    return partial(_timed, envs, recording, steps)


def vector_replay(recording: Recording) -> Replay:
    """All mechs of blue as one agent, red played inside; battles restart by themselves, which is timed."""
    script, (own, others) = Script(), _by_team(recording)
    envs = BattleVectorEnv(
        recording.config, len(recording.seeds), control="team", opponent=script, maps=recording.maps
    )  # fmt: skip

    def steps() -> Any:
        returned: Any = None
        for mine, script.actions in zip(own, others, strict=True):
            returned = envs.step(mine)
        return returned

    return partial(_timed, envs, recording, steps)


def _timed(envs: BattleBatchEnv | BattleVectorEnv, recording: Recording, steps: Callable[[], Any]) -> float:
    """Seconds of the steps of an environment that restarts battles by itself."""
    envs.reset(seed=recording.seeds)
    start = time.perf_counter()
    steps()
    seconds = time.perf_counter() - start
    recording.check_end(envs._battles.engine)
    return seconds


def single_replay(recording: Recording, resets: bool = False) -> Replay:
    """One battle with blue as its agent, red played inside, and the beginning of new battles on the clock or not."""
    script, (own, others) = Script(), _by_team(recording)
    env = BattleEnv(recording.config, control="team", opponent=script, maps=recording.maps)

    def action(t: int) -> Any:
        script.actions = others[t]
        return own[t, 0]

    return partial(_timed_single, env, env._battles.engine, recording, resets, action)


def parallel_replay(recording: Recording, resets: bool = False) -> Replay:
    """One battle as five dicts a step, and the beginning of new battles on the clock or not."""
    env = parallel_env(recording.config, maps=recording.maps)
    row = {agent: i for i, agent in enumerate(env.possible_agents)}

    def action(t: int) -> dict[str, NDArray[np.float32]]:
        return {agent: recording.actions[t, 0, row[agent]] for agent in env.agents}

    return partial(_timed_single, env, env.engine, recording, resets, action)


def _by_team(recording: Recording) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Blue's actions (T, B, n * A), as a team's agent gives them, and red's (T, B * R, A), as a policy does."""
    blue, count = len(recording.config.blue), len(recording.actions)
    own = np.ascontiguousarray(recording.actions[:, :, :blue]).reshape(count, len(recording.seeds), -1)
    return own, recording.actions[:, :, blue:].reshape(count, -1, recording.actions.shape[-1])


def _timed_single(
    env: Any, engine: BattleEngine, recording: Recording, resets: bool, action: Callable[[int], Any]
) -> float:
    """Seconds of the steps of an environment of one battle, and of its resets where they are to be timed.

    `action` is called, off the clock, for what is done in a decision.
    """
    env.reset(seed=recording.seeds[0])
    seconds = 0.0
    for t, begins in enumerate(recording.begins[:, 0].tolist()):
        given = action(t)
        start = time.perf_counter()
        if begins:
            env.reset()
        else:
            env.step(given)
        taken = time.perf_counter() - start
        seconds += taken if resets or not begins else 0.0
    recording.check_end(engine)
    return seconds


def aec_replay(recording: Recording, resets: bool = False) -> Replay:
    """One battle, mech after mech as PettingZoo's loop goes, and the beginning of new battles on the clock or not."""
    env = aec_env(recording.config, maps=recording.maps)
    first, *others = np.split(recording.actions[:, 0], np.flatnonzero(recording.begins[:, 0]))
    battles = [first, *(actions[1:] for actions in others)]  # in a decision that begins a battle no mech acts

    def replay() -> float:
        seconds = 0.0
        for number, actions in enumerate(battles):
            scripts = {agent: iter(list(actions[:, row])) for row, agent in enumerate(env.possible_agents)}
            start = time.perf_counter()
            env.reset(seed=None if number else recording.seeds[0])
            begun = time.perf_counter()
            _cycle(env, scripts)
            seconds += time.perf_counter() - (start if resets and number else begun)
        recording.check_end(env.unwrapped.engine)
        return seconds

    return replay


def _cycle(env: Any, scripts: Mapping[str, Iterator[NDArray[np.float32]]]) -> None:
    """Play a battle to its end, or to that of its mechs' scripts."""
    for agent in env.agent_iter():
        _, _, terminated, truncated, _ = env.last()
        action = None
        if not (terminated or truncated):
            action = next(scripts[agent], None)
            if action is None:
                return
        env.step(action)


def replays(batch: Recording, single: Recording, player: Player) -> dict[str, tuple[Recording, Replay]]:
    """Every API with what it plays: a recording of several battles, or of one."""
    resets = player == "random"
    engine: dict[str, tuple[Recording, Replay]] = {}
    if not resets:
        engine = {ENGINE: (batch, engine_replay(batch)), BETWEEN: (batch, thinking_replay(batch, player))}
    return engine | {
        ENGINE_WITH_RESETS: (batch, engine_replay(batch, resets=True)),
        BATCH_ENV: (batch, batch_replay(batch)), VECTOR_ENV: (batch, vector_replay(batch)),
        SINGLE_ENV: (single, single_replay(single, resets)), PARALLEL_ENV: (single, parallel_replay(single, resets)),
        AEC_ENV: (single, aec_replay(single, resets)),
    }  # fmt: skip


def recordings(player: Player, config: BattleConfig, decisions: int, maps: MapPool) -> tuple[Recording, Recording]:
    """A batch of battles, and battles in one place for twice as many decisions."""
    played = config_for(player, config, decisions)
    return record(played, player, decisions, maps), record(played, player, 2 * decisions, maps, battles=1)


def rate(recording: Recording, replay: Replay) -> float:
    """Live agent-steps per second of a replay that is made now."""
    return recording.agent_steps / replay()


def apis(effort: Effort) -> list[Table]:
    """Every API at every size, between scripted novices and with random actions."""
    sizes = dict(list(SIZES.items())[1:3]) if effort.quick else SIZES
    players: tuple[Player, ...] = "novices", "random"
    plays: dict[tuple[Player, str, str], Callable[[], float]] = {}
    live: dict[tuple[Player, str], float] = {}
    for size, scenario in sizes.items():
        config = make_config(scenario)
        maps = MapPool.generate(config, MAPS)
        for player in players:
            batch, single = recordings(player, config, effort.decisions, maps)
            live[player, size] = batch.agent_steps / batch.battle_steps
            for api, (recording, replay) in replays(batch, single, player).items():
                plays[player, api, size] = partial(rate, recording, replay)
    tell(f"apis: {effort.rounds} rounds of {len(plays)} measurements")
    found = interleaved(plays, effort.rounds)
    limit = config_for("random", config, effort.decisions).max_steps
    titles: dict[Player, str] = {
        "novices": "between scripted novices",
        "random": f"random actions, a restart every {limit} decisions",
    }
    return [_table(player, titles[player], found, live) for player in players]


def _table(
    player: Player,
    title: str,
    found: Mapping[tuple[Player, str, str], list[float]],
    live: Mapping[tuple[Player, str], float],
) -> Table:
    chosen = {(api, size): values for (who, api, size), values in found.items() if who == player}
    cells = {key: statistics.median(values) for key, values in chosen.items()}
    cells |= {(LIVE, size): mechs for (who, size), mechs in live.items() if who == player}
    return by_pairs(player, f"APIs, {title}", "live agent-steps/s", cells, [spread_note(chosen.values())])
