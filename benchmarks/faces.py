"""Live agent-steps per second through every face and size, on one thread."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.recording import BATCH, MAPS, Player, Recording, config_for, play, record
from benchmarks.tables import Table, by_pairs
from benchmarks.timing import Effort, interleaved, spread_note, tell
from echelon_env import BattleBatchEnv, BattleEngine, BattleVectorEnv, MapPool, make_config, parallel_env

SIZES = {"1 v 1": "duel", "5 v 5": "skirmish", "10 v 10": "battle", "20 v 20": "company"}
ENGINE, BATCH_ENV, VECTOR_ENV, PARALLEL_ENV = (
    f"engine, {BATCH} battles",
    f"batch env, {BATCH}",
    f"Gymnasium vector env, {BATCH}",
    "PettingZoo parallel env, 1",
)
ENGINE_WITH_RESETS = f"engine and resets, {BATCH}"
BETWEEN = f"engine, players between, {BATCH}"

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


def engine_face(recording: Recording, resets: bool = False) -> Replay:
    """The engine's step, and the beginning of new battles on the clock or not."""
    engine = BattleEngine(recording.config, len(recording.seeds), maps=recording.maps)

    def replay() -> float:
        seconds = sum(step + resets * reset for step, reset in play(engine, recording))
        recording.check_end(engine)
        return seconds

    return replay


def thinking_face(recording: Recording, player: Player) -> Replay:
    """The engine's step while players think between steps, off the clock, and drive its arrays out of the caches."""
    shape = recording.actions.shape
    return lambda: record(recording.config, player, shape[0], recording.maps, shape[1]).engine_seconds


def batch_face(recording: Recording) -> Replay:
    """Every mech a row, observations copied; battles begin anew by themselves, which is timed."""
    envs = BattleBatchEnv(recording.config, len(recording.seeds), maps=recording.maps)

    def steps() -> None:
        for actions in recording.actions:
            envs.step(actions)

    return partial(_timed, envs, recording, steps)


def vector_face(recording: Recording) -> Replay:
    """All mechs of blue as one agent, red played inside; battles begin anew by themselves, which is timed."""
    script, blue = Script(), len(recording.config.blue)
    envs = BattleVectorEnv(
        recording.config, len(recording.seeds), control="team", opponent=script, maps=recording.maps
    )  # fmt: skip
    own = np.ascontiguousarray(recording.actions[:, :, :blue]).reshape(*recording.actions.shape[:2], -1)
    others = recording.actions[:, :, blue:].reshape(len(own), -1, recording.actions.shape[-1])

    def steps() -> None:
        for mine, script.actions in zip(own, others, strict=True):
            envs.step(mine)

    return partial(_timed, envs, recording, steps)


def _timed(envs: BattleBatchEnv | BattleVectorEnv, recording: Recording, steps: Callable[[], None]) -> float:
    """Seconds of the steps of an environment that begins battles anew by itself."""
    envs.reset(seed=recording.seeds)
    start = time.perf_counter()
    steps()
    seconds = time.perf_counter() - start
    recording.check_end(envs._battles.engine)
    return seconds


def parallel_face(recording: Recording, resets: bool = False) -> Replay:
    """One battle as five dicts a step, and the beginning of new battles on the clock or not."""
    env = parallel_env(recording.config, maps=recording.maps)
    row = {agent: i for i, agent in enumerate(env.possible_agents)}

    def replay() -> float:
        env.reset(seed=recording.seeds[0])
        seconds = 0.0
        for actions, begins in zip(recording.actions[:, 0], recording.begins[:, 0].tolist(), strict=True):
            given = {agent: actions[row[agent]] for agent in env.agents}
            start = time.perf_counter()
            if begins:
                env.reset()
            else:
                env.step(given)
            taken = time.perf_counter() - start
            seconds += taken if resets or not begins else 0.0
        recording.check_end(env._engine)
        return seconds

    return replay


def replays(batch: Recording, single: Recording, player: Player) -> dict[str, Replay]:
    """Every face with a recording to play: of several battles, or of one."""
    if player == "random":
        return {
            ENGINE_WITH_RESETS: engine_face(batch, resets=True), BATCH_ENV: batch_face(batch),
            VECTOR_ENV: vector_face(batch), PARALLEL_ENV: parallel_face(single, resets=True),
        }  # fmt: skip
    return {
        ENGINE: engine_face(batch), BETWEEN: thinking_face(batch, player), BATCH_ENV: batch_face(batch),
        VECTOR_ENV: vector_face(batch), PARALLEL_ENV: parallel_face(single),
    }  # fmt: skip


def faces(effort: Effort) -> list[Table]:
    """Every face at every size, between scripted novices and with random actions."""
    sizes = dict(list(SIZES.items())[1:3]) if effort.quick else SIZES
    players: tuple[Player, ...] = "novices", "random"
    plays: dict[tuple[Player, str, str], Callable[[], float]] = {}
    live: dict[tuple[Player, str], float] = {}
    for size, scenario in sizes.items():
        config = make_config(scenario)
        maps = MapPool.generate(config, MAPS)
        for player in players:
            played = config_for(player, config, effort.decisions)
            batch = record(played, player, effort.decisions, maps)
            single = record(played, player, 2 * effort.decisions, maps, battles=1)
            live[player, size] = batch.agent_steps / batch.battle_steps
            for face, replay in replays(batch, single, player).items():
                steps = (single if face == PARALLEL_ENV else batch).agent_steps
                plays[player, face, size] = partial(_rate, steps, replay)
    tell(f"faces: {effort.rounds} rounds of {len(plays)} measurements")
    rates = interleaved(plays, effort.rounds)
    limit = config_for("random", config, effort.decisions).max_steps
    titles: dict[Player, str] = {
        "novices": "between scripted novices",
        "random": f"random actions, a restart every {limit} decisions",
    }
    return [_table(player, titles[player], rates, live) for player in players]


def _rate(steps: int, replay: Replay) -> float:
    return steps / replay()


def _table(
    player: Player,
    title: str,
    rates: Mapping[tuple[Player, str, str], list[float]],
    live: Mapping[tuple[Player, str], float],
) -> Table:
    chosen = {(face, size): values for (who, face, size), values in rates.items() if who == player}
    cells = {key: statistics.median(values) for key, values in chosen.items()}
    cells |= {("live mechs a battle", size): mechs for (who, size), mechs in live.items() if who == player}
    return by_pairs(player, f"Faces, {title}", "live agent-steps/s", cells, [spread_note(chosen.values())])
