"""Electronic warfare: what mechs radiate, and its effect on all sensors."""

from __future__ import annotations

import math

from echelon_env.engine.body import radiation
from echelon_env.engine.geometry import clip
from echelon_env.engine.kernels import Row, kernel
from echelon_env.engine.state import ECCM, ECM, SILENT, State
from echelon_env.engine.tables import Tables
from echelon_env.engine.targeting import squared_distance


@kernel
def strength(rules: Row, distance: float) -> float:
    """Strength, 0 to 1, of ECM or ECCM at a distance in metres."""
    return float(max(0.0, 1.0 - distance / rules.electronics_range))


@kernel
def measure_quality(tables: Tables, state: State, b: int) -> None:
    """Compute jamming and sensor quality of a battle's living mechs."""
    rules, mechs = tables.rules[0], state.mechs[b]
    for m in range(mechs.shape[0]):
        mechs[m].jam, mechs[m].quality = 0.0, 1.0  # quality first collects ECCM alone
    for o in range(mechs.shape[0]):
        radiates = radiation(mechs[o])
        if radiates == SILENT:
            continue
        for m in range(mechs.shape[0]):
            mech = mechs[m]
            if m == o or not mech.alive:
                continue
            friendly = mech.team == mechs[o].team
            if friendly and radiates == ECCM:
                here = strength(rules, math.sqrt(squared_distance(tables, mech, mechs[o])))
                mech.quality = max(mech.quality, 1.0 + rules.counter * here)
            elif not friendly and radiates == ECM:
                mech.jam = max(mech.jam, strength(rules, math.sqrt(squared_distance(tables, mech, mechs[o]))))
    for m in range(mechs.shape[0]):
        mech = mechs[m]
        quality = clip(mech.quality - rules.jamming * mech.jam, rules.min_quality, rules.max_quality)
        mech.quality = rules.min_quality if mech.shutdown else quality
