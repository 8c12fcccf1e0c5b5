"""Arcology spires."""

from __future__ import annotations

import numpy as np

from echelon_env.config.biomes import Biome, Plot
from echelon_env.config.catalog import AIR, CONCRETE, FOLIAGE, GLASS, REINFORCED
from echelon_env.terrain.biomes.cells import split
from echelon_env.terrain.biomes.plot import raise_columns

SPACING = 21  # m, least distance from one spire's middle to the next one's
HALF_BOULEVARD = 3  # m, least
SKIRT = 4  # m, width of the terraces at a spire's foot: the widest mech stands at their top
TERRACE_TOP = 3  # m
LOBBY = 5  # m, height of the hall inside a spire's foot
SPIRE_TOP = 15  # m
SHOULDER = 12  # m, height of a spire's outer 2 m
DOOR = 5  # m, 1 m less where the spire is an even number of metres wide
HEDGE_TOP = 3  # m, hides every mech


def spires(plot: Plot, rng: np.random.Generator) -> None:
    """Arcology spires: avenues are long, and mechs on the terraces see over all cover on the ground.

    Terraces at two sides of each spire rise in steps that every mech climbs, with a wall at the back. The glass lobby
    between them is a hall to walk through: missiles cannot dive into it, but all mechs can look in. Hedges along the
    avenues hide the two sides of an avenue from each other, not from the terraces.
    """
    rows, columns = (split(length, SPACING) for length in plot.shape)
    sites = (rows.count, columns.count)
    pick = np.ix_(rows.index, columns.index)
    y, x = rows.middle[:, None], columns.middle
    turned = (rng.random(sites) < 0.5)[pick]  # terraces at the sides in y, doors in x
    across, along = np.where(turned, y, x), np.where(turned, x, y)
    site = np.minimum.outer(rows.extent, columns.extent)  # m
    size = np.minimum(rng.integers(9, 13, sites)[pick], site - 2 * (HALF_BOULEVARD + TERRACE_TOP))  # m, of the spire
    edge = np.minimum(rows.edge[:, None], columns.edge)

    from_face = (size - 1 - np.maximum(across, along)) // 2  # m, 0 on a spire's outermost columns, negative outside
    lot = edge >= HALF_BOULEVARD
    spire = lot & (from_face >= 0)
    raise_columns(plot, np.where(spire, np.where(from_face >= 2, SPIRE_TOP, SHOULDER), 0), REINFORCED)
    steps = np.minimum((size + 2 * SKIRT + 1 - across) // 2, edge - HALF_BOULEVARD + 1)
    terrace = np.where(along < size, np.minimum(steps, TERRACE_TOP), 0)
    pier = lot & (across < size) & (across >= size - 4)
    piers = np.where(pier, np.select((along < size + 2, along < size + 4), (8, 5), 0), 0)
    raise_columns(plot, np.where(spire, 0, np.maximum(terrace, piers)), CONCRETE)

    face = spire & (from_face == 0)
    front = face & (along >= size - 2)
    window = face & (np.add.outer(np.arange(plot.shape[0]), np.arange(plot.shape[1])) % 2 == 1)
    plot.voxels[LOBBY + 1 : min(SHOULDER - 1, plot.max_height), window] = GLASS
    if plot.max_height > LOBBY:
        plot.voxels[:LOBBY, front & (across < size - 2)] = GLASS
        hall = spire & ((from_face > 0) | (front & (across < DOOR)))
        plot.voxels[:LOBBY, hall] = AIR

    hedge = ((rows.edge[:, None] == 0) & (columns.edge > 4)) | ((columns.edge == 0) & (rows.edge[:, None] > 4))
    hedge &= (rng.random(sites) < 0.7)[pick]
    layers = plot.voxels[: min(HEDGE_TOP, plot.max_height)]
    layers[hedge & (layers == AIR)] = FOLIAGE


SPIRES = Biome(
    name="spires",
    order=2,
    brush=spires,
    shares={"concrete": (0.02, 0.14), "reinforced": (0.01, 0.18), "glass": (0.003, 0.035), "foliage": (0.0, 0.09)},
)
