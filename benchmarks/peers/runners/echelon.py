"""Echelon itself, by the same rules as its peers: SCENARIO API PLAYER (an API and a player of `benchmarks.apis`)."""

import sys
from pathlib import Path

from turns import one_core, serve

one_core()
sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
from benchmarks.apis import recordings, replays  # noqa: E402
from benchmarks.recording import MAPS, config_for  # noqa: E402
from benchmarks.recording import play as run_battles  # noqa: E402

from echelon_env import BattleEngine, MapPool, make_config  # noqa: E402
from echelon_env.layout.observations import OBSERVATION_DIM  # noqa: E402

DECISIONS = 480
scenario, api, player = sys.argv[1:4]
config = make_config(scenario)
batch, single = recordings(player, config, DECISIONS, MapPool.generate(config, MAPS))
recording, replay = replays(batch, single, player)[api]


def counted():
    """Lines of sight, one for each pair of living enemies, and moved projectiles of a battle's decision."""
    engine = BattleEngine(config_for(player, config, DECISIONS), len(recording.seeds), maps=recording.maps)
    blue, ticks = len(config.blue), config.decision_repeat
    lines = projectiles = 0

    def count(t, fresh):
        nonlocal lines, projectiles
        alive = engine.alive & ~engine.battle_over[:, None]
        lines += int((alive[:, :blue].sum(axis=1) * alive[:, blue:].sum(axis=1)).sum())
        projectiles += ticks * int(engine.state.battles["num_projectiles"][~engine.battle_over].sum())

    run_battles(engine, recording, count)
    return lines / recording.battle_steps, projectiles / recording.battle_steps


def play(seconds: float):
    """Whole recordings."""
    busy, times = 0.0, 0
    while not times or busy < seconds:
        busy += replay()
        times += 1
    live = times * recording.agent_steps
    return busy, times * recording.battle_steps, live, live


sight_lines, projectiles = counted()
serve(play, OBSERVATION_DIM, sight_lines, projectiles)
