"""How well scripted players walk: how often they get stuck, and how much longer than need be they walk to the zone.

Run ``python benchmarks/navigation.py [--level novice] [--scenarios skirmish battle] [--maps 32] [--battles]``. On a
march one team walks to the zone while the other stands still; its times are compared with those of the shortest ways
that a mech on foot can take at its top speed, on the map as it is. With ``--battles`` both teams play instead. A mech
is stuck in a window of 20 s if it is never 2 m from where it was at the window's beginning, and lives, is outside the
zone and neither fallen nor shut down all the while.
"""

from __future__ import annotations

import argparse
import math
from collections import defaultdict
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from scipy.sparse import csgraph, csr_array

from echelon_env import BattleEngine, opponents
from echelon_env.config.catalog import MATERIALS
from echelon_env.layout.observations import STREAMS, Objective
from echelon_env.terrain import Terrain
from echelon_env.terrain.connectivity import STEP, standing_heights

WINDOW_SECONDS, STRIDE_SECONDS, STUCK_METRES = 20.0, 5.0, 2.0
MOVES = {
    (0, 1): (),
    (1, 0): (),
    (1, 1): ((0, 1), (1, 0)),
    (1, -1): ((0, -1), (1, 0)),
    (1, 2): ((0, 1), (1, 1)),
    (1, -2): ((0, -1), (1, -1)),
    (2, 1): ((1, 0), (1, 1)),
    (2, -1): ((1, 0), (1, -1)),
}
"""Moves by (dy, dx) columns, and the windows that they lead over; so many that slanting ways are right within 3 %."""

IN_ZONE = STREAMS["objective"].start + Objective.IN_ZONE


def metres_to_zone(terrain: Terrain, width: float, height: float) -> NDArray[np.float64]:
    """Metres of the shortest way to the zone from each window of columns (see `connectivity`).

    Ground that slows counts as so much longer.
    """
    stand = standing_heights(terrain.voxels, width, height)
    size = math.ceil(width)
    y, x = np.indices(stand.shape)
    factor = np.array([1.0 / material.speed_factor for material in MATERIALS])
    slow = ndimage.maximum_filter(factor[terrain.voxels].max(axis=0), size, origin=-(size // 2))
    slow = slow[: len(stand), : len(stand)]

    def shifted(grid: NDArray[Any], dy: int, dx: int) -> NDArray[Any]:
        return np.pad(grid, 2, constant_values=-1)[2 + dy :, 2 + dx :][: len(grid), : len(grid)]

    index = np.arange(stand.size).reshape(stand.shape)
    sources, targets, lengths = [], [], []
    for (dy, dx), between in MOVES.items():
        for sign in (1, -1):
            there = shifted(stand, sign * dy, sign * dx)
            possible = (stand >= 0) & (there >= 0) & (there <= stand + STEP)
            for step_y, step_x in between:
                middle = shifted(stand, sign * step_y, sign * step_x)
                possible &= (middle >= 0) & (middle <= np.minimum(stand, there) + STEP)
            sources.append(index[possible])
            targets.append(shifted(index, sign * dy, sign * dx)[possible])
            lengths.append(math.hypot(dy, dx) * slow[possible])
    ends = np.concatenate(targets), np.concatenate(sources)  # from the zone outwards
    graph = csr_array((np.concatenate(lengths), ends), shape=(stand.size, stand.size))
    inside = np.hypot(x + size / 2 - terrain.zone_x, y + size / 2 - terrain.zone_y) <= terrain.zone_radius
    goals = index[inside & (stand >= 0) & (stand < 2)]
    metres: NDArray[np.float64] = csgraph.dijkstra(graph, indices=goals, min_only=True)
    return metres.reshape(stand.shape)


class Walks(NamedTuple):
    """What M mechs that play do in B battles of T decisions."""

    engine: BattleEngine
    places: NDArray[np.float64]  # (T, B, M, 2) m
    free: NDArray[np.bool_]  # (T, B, M) alive, outside the zone, neither fallen nor shut down
    arrivals: NDArray[np.float64]  # (B, M) s at which they came into the zone first, inf never


def walk(engine: BattleEngine, level: str, seed: int, team: int) -> Walks:
    """Play maps of seeds from `seed` on; of the mechs those before `team` play at a level, the others stand still."""
    battles, seconds = engine.num_battles, engine.config.decision_seconds
    observations = engine.reset(np.arange(seed, seed + battles))
    players = opponents.make(level, 0, engine.config)
    places: list[NDArray[np.float64]] = []
    free: list[NDArray[np.bool_]] = []
    arrivals = np.full((battles, team), np.inf)
    while not engine.battle_over.all():
        mechs = engine.state.mechs[:, :team]
        inside = observations[:, :team, IN_ZONE] > 0
        arrivals = np.where(inside & np.isinf(arrivals), len(places) * seconds, arrivals)
        places.append(np.stack([mechs["x"], mechs["y"]], axis=-1))
        helpless = (mechs["shutdown"] > 0) | (mechs["fallen"] > 0) | (mechs["alive"] == 0)
        free.append(~inside & ~helpless & ~engine.battle_over[:, None])
        actions = np.zeros((battles, engine.num_mechs, engine.action_dim), np.float32)
        acted = players.act(observations[:, :team].reshape(battles * team, -1))
        actions[:, :team] = acted.reshape(battles, team, -1)
        observations, *_ = engine.step(actions)
    return Walks(engine, np.array(places), np.array(free), arrivals)


def stuck_windows(walks: Walks) -> tuple[list[tuple[int, int, int]], int]:
    """Windows (battle, mech, decision) in which a mech was stuck, and how many windows there were."""
    seconds = walks.engine.config.decision_seconds
    length, stride = round(WINDOW_SECONDS / seconds), round(STRIDE_SECONDS / seconds)
    stuck, windows = [], 0
    for first in range(0, len(walks.places) - length, stride):
        track = walks.places[first : first + length]
        counted = walks.free[first : first + length].all(axis=0)
        windows += int(counted.sum())
        still = np.linalg.norm(track - track[0], axis=-1).max(axis=0) < STUCK_METRES
        stuck += [(int(b), int(m), first) for b, m in np.argwhere(counted & still)]
    return stuck, windows


def multiples(walks: Walks) -> dict[str, list[tuple[float, int, int]]]:
    """By class, walks (multiple, battle, mech), and how many times as long as the shortest way's they took."""
    config = walks.engine.config
    found: dict[str, list[tuple[float, int, int]]] = defaultdict(list)
    for b, m in np.ndindex(walks.arrivals.shape):
        mech_class = config.catalog.mech_classes[walks.engine.state.mechs["mech_class"][b, m]]
        metres = metres_to_zone(walks.engine.terrain(b), mech_class.length, mech_class.height)
        x, y = np.rint(walks.places[0, b, m] - math.ceil(mech_class.length) / 2).astype(int)
        shortest = metres[y, x] / mech_class.top_speed
        found[mech_class.name].append((float(walks.arrivals[b, m] / shortest), b, m))
    return dict(found)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--level", default="novice", choices=list(opponents.LEVELS))
    parser.add_argument("--scenarios", nargs="+", default=["skirmish", "battle"])
    parser.add_argument("--maps", type=int, default=32)
    parser.add_argument("--seed", type=int, default=0, help="of the first map")
    parser.add_argument("--biomes", nargs="+", default=[], help="that maps are made of, instead of the scenario's")
    parser.add_argument(
        "--blue", nargs="+", default=[], help="classes of the team that walks, instead of the scenario's"
    )
    parser.add_argument("--battles", action="store_true", help="both teams play")
    parser.add_argument("--list", action="store_true", help="say which mechs got stuck, and which came late")
    arguments = parser.parse_args()
    changes: dict[str, Any] = {} if arguments.battles else {"zone": {"score_to_win": 1e6}}
    changes |= {"terrain": {"biomes": tuple(arguments.biomes)}} if arguments.biomes else {}
    changes |= {"blue": tuple(arguments.blue)} if arguments.blue else {}
    for scenario in arguments.scenarios:
        engine = BattleEngine(scenario, arguments.maps, **changes)
        team = engine.num_mechs if arguments.battles else len(engine.config.blue)
        walks = walk(engine, arguments.level, arguments.seed, team)
        stuck, windows = stuck_windows(walks)
        mechs = len({place[:2] for place in stuck})
        print(f"{scenario}: stuck in {len(stuck)} of {windows} windows, {mechs} mechs", flush=True)
        found = {} if arguments.battles else multiples(walks)
        for name, values in found.items():
            times = [multiple for multiple, _, _ in values]
            low, middle, high, most = np.quantile(times, [0.25, 0.5, 0.75, 0.95], method="lower")
            print(
                f"  {name:8s} time / shortest: median {middle:.2f}, quartiles {low:.2f} {high:.2f}, 95 % {most:.2f}, "
                f"never there: {np.isinf(times).sum()} of {len(times)}",
                flush=True,
            )
        if arguments.list:
            print("  stuck (battle, mech, decision):", stuck[:40])
            print("  late (multiple, battle, mech):", sorted(chain(*found.values()), reverse=True)[:20])


if __name__ == "__main__":
    main()
