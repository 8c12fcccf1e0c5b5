"""Echelon itself, by the same rules as its peers: SCENARIO FACE PLAYER (a face and a player of `benchmarks.faces`)."""

import sys
from pathlib import Path

from turns import one_core, serve

one_core()
sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
from benchmarks.faces import PARALLEL_ENV, replays  # noqa: E402
from benchmarks.recording import BATCH, MAPS, config_for, record  # noqa: E402

from echelon_env import MapPool, make_config  # noqa: E402

DECISIONS = 480
scenario, face, player = sys.argv[1:4]
config = config_for(player, make_config(scenario), DECISIONS)
maps = MapPool.generate(config, MAPS)
recordings = {size: record(config, player, DECISIONS, maps, size) for size in (BATCH, 1)}
recording = recordings[1 if face == PARALLEL_ENV else BATCH]
replay = replays(recordings[BATCH], recordings[1], player)[face]


def play(seconds: float):
    """Whole recordings."""
    busy, times = 0.0, 0
    while not times or busy < seconds:
        busy += replay()
        times += 1
    live = times * recording.agent_steps
    return busy, times * recording.battle_steps, live, live


serve(play)
