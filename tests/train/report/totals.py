"""Battle statistics whose sums add up, as a run keeps them."""

import numpy as np

from echelon_env.evaluate.battle_totals import BattleTotals, OpponentTotals
from echelon_env.evaluate.statistics_file import EvaluationTotals, Period, StatisticsFile, write_statistics

WEAPONS = ("laser", "gauss")


def sums(rng, mechs=10):
    """Random sums of a mech class."""
    found = {"mechs": float(mechs), "alive_seconds": 40.0 * mechs, "zone_seconds": 10.0 * mechs}
    for weapon in WEAPONS:
        shots = int(rng.integers(20, 60))
        found |= {
            f"weapon/{weapon}/shots": float(shots),
            f"weapon/{weapon}/hits": float(rng.integers(0, shots)),
            f"weapon/{weapon}/damage": float(rng.integers(10, 900)),
            f"weapon/{weapon}/kills": float(rng.integers(0, 4)),
            f"taken/weapon/{weapon}": float(rng.integers(10, 900)),
            f"death/weapon/{weapon}": float(rng.integers(0, 3)),
        }
    found |= {"taken/hazard": 7.0, "death/hazard": 1.0, "reward/damage": 12.5, "reward/death": -3.0, "reward": 9.5}
    for name in ("shots", "hits", "damage", "kills"):
        whole = {"damage": "damage_dealt"}.get(name, name)
        found[whole] = sum(found[f"weapon/{weapon}/{name}"] for weapon in WEAPONS)
    found["damage_taken"] = sum(value for name, value in found.items() if name.startswith("taken/"))
    found["deaths"] = sum(value for name, value in found.items() if name.startswith("death/"))
    return found


def totals(seed=0, opponents=("novice", "expert")):
    rng = np.random.default_rng(seed)
    made = {}
    for name in opponents:
        results = {"battles": 10.0, "wins": 6.0, "draws": 1.0, "losses": 3.0, "seconds": 300.0, "own_score": 50.0}
        own, enemy = ({each: sums(rng) for each in ("heavy", "scout")} for _ in range(2))
        made[name] = OpponentTotals(results, own, enemy)
    heat = np.zeros((2, 4, 32, 32))
    heat[:, 0, 3, 5] = 100.0
    heat[0, 1, 30, 2] = 4.0
    return BattleTotals(made, {64: heat})


def write(path, player="run", opponents=("novice", "expert")):
    periods = Period(0, 1000, totals(1, opponents)), Period(1000, 2000, totals(2, opponents))
    evaluations = (EvaluationTotals(2000, "evaluation", totals(3, opponents)),)
    file = StatisticsFile(player, 2000, periods, evaluations)
    write_statistics(path, file)
    return file
