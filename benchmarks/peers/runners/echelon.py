"""Echelon itself, by the same rules as its peers: SCENARIO API PLAYER (an API and a player of `benchmarks.apis`)."""

import sys
from pathlib import Path

from turns import one_core, serve

one_core()
sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
from benchmarks.apis import recordings, replays  # noqa: E402
from benchmarks.recording import MAPS, Player  # noqa: E402

from echelon_env import MapPool, make_config  # noqa: E402
from echelon_env.layout.observations import OBSERVATION_DIM  # noqa: E402

DECISIONS = 480
scenario, api = sys.argv[1:3]
player: Player = "novices" if sys.argv[3] == "novices" else "random"
config = make_config(scenario)
batch, single = recordings(player, config, DECISIONS, MapPool.generate(config, MAPS))
recording, replay = replays(batch, single, player)[api]


def play(seconds: float) -> tuple[float, int, int, int]:
    """Whole recordings."""
    busy, times = 0.0, 0
    while not times or busy < seconds:
        busy += replay()
        times += 1
    live = times * recording.agent_steps
    return busy, times * recording.battle_steps, live, live


serve(play, OBSERVATION_DIM)
