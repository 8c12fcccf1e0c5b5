"""Tunnels with lava."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from echelon_env.config.biomes import Biome, Plot
from echelon_env.config.catalog import AIR, CONCRETE, LAVA, REINFORCED
from echelon_env.terrain.biomes.plot import raise_columns

PITCH = 24  # m, about the distance between junctions
JITTER = 3.0  # m, the farthest that a junction lies off its place along each axis
BEND = 5.0  # m, the farthest that a passage swings off the straight way, to one side and in an S
ALLEY = 9.0  # m along each axis, length of a blind alley
SAMPLES = 64  # points along a passage, less than 1 m apart
PASSAGE = 5  # m, width of a passage's dry floor
SEAM = 2  # m, width of a lava seam
HEADROOM = 5  # m, height of a roof above the floor
CHAMBER_RADIUS = (4, 6)  # m, least and greatest
POOL_RADIUS = 3  # m, of the lava at an alley's end


def tunnels(plot: Plot, rng: np.random.Generator) -> None:
    """Massive rock cut by winding passages: sight ends at the next bend, and a mech that waits there fires first.

    Chambers at the junctions are open to the sky. Most passages between them are roofed, so no missile dives into them.
    Every passage has 5 m of dry floor for the heavy. Lava seams along one wall heat mechs that are pushed aside, and
    blind alleys end in lava. Concrete walls can be breached; reinforced veins hardly.
    """
    shape = plot.shape
    junctions, passages, alleys = _network(shape, rng)
    path = _drawn(shape, passages)
    seamed = _drawn(shape, passages[rng.random(len(passages)) < 0.45])
    roofed = _drawn(shape, passages[rng.random(len(passages)) < 0.75, SAMPLES // 5 : SAMPLES * 4 // 5])
    dry = ndimage.maximum_filter(path | _drawn(shape, alleys[:, : SAMPLES // 2]), PASSAGE)
    seams = ndimage.maximum_filter(seamed, PASSAGE + SEAM, origin=SEAM // 2)
    pools = _discs(shape, alleys[:, -1], np.full(len(alleys), POOL_RADIUS))
    chambers = _discs(shape, junctions, rng.integers(*CHAMBER_RADIUS, len(junctions), endpoint=True))
    niches = ndimage.maximum_filter(path, PASSAGE + 2) & (ndimage.uniform_filter(rng.random(shape), 3) > 0.6)
    floor = dry | seams | pools | chambers | niches | ndimage.maximum_filter(_drawn(shape, alleys), PASSAGE)

    relief = ndimage.uniform_filter(rng.random(shape), 9) - 0.5
    tops = np.clip(9 + (relief * 25).astype(np.int64), 8, 10)
    raise_columns(plot, tops, np.where(np.abs(relief) > 0.04, REINFORCED, CONCRETE))
    # No roofs beside lanes, where the rock that supports them is cleared.
    sky = chambers | ~ndimage.maximum_filter(roofed, PASSAGE + 4) | ndimage.maximum_filter(plot.open_ground, 7)
    plot.voxels[:HEADROOM, floor] = AIR
    plot.voxels[:, floor & sky] = AIR
    plot.voxels[0, (seams | pools) & ~dry] = LAVA


def _network(
    shape: tuple[int, int], rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Junctions (N, 2), passages (P, SAMPLES, 2) and blind alleys (A, SAMPLES, 2) as columns (y, x).

    Passages leave the plot at fixed places, so that those of two plots meet at their common edge.
    """
    counts = [(length + PITCH // 2) // PITCH or 1 for length in shape]
    places = [(np.arange(count + 2) - 0.5) * length / count for count, length in zip(counts, shape, strict=True)]
    nodes = np.stack(np.meshgrid(*places, indexing="ij"), axis=2)
    nodes[1:-1, 1:-1] += JITTER * (2 * rng.random((*counts, 2)) - 1)
    nodes = np.clip(nodes, 0, np.array(shape) - 1.0)
    along_y, along_x = nodes[:, 1:-1], nodes[1:-1]
    starts = np.concatenate((along_y[:-1].reshape(-1, 2), along_x[:, :-1].reshape(-1, 2)))
    ends = np.concatenate((along_y[1:].reshape(-1, 2), along_x[:, 1:].reshape(-1, 2)))
    share = (np.arange(SAMPLES) / (SAMPLES - 1))[:, None]
    arch = 4 * share * (1 - share)
    bend, swing = BEND * (2 * rng.random((2, len(starts), 1, 1)) - 1)
    sideways = np.abs(ends - starts)[:, None, ::-1] > np.abs(ends - starts)[:, None]
    passages = (
        starts[:, None] + (ends - starts)[:, None] * share + sideways * arch * (bend + 2 * swing * (1 - 2 * share))
    )
    junctions = nodes[1:-1, 1:-1].reshape(-1, 2)
    blind = junctions[rng.random(len(junctions)) < 0.7]
    heading = ALLEY * rng.choice((-1.0, 1.0), (len(blind), 1, 2))
    alleys = blind[:, None] + heading * share
    return junctions.astype(np.int64), passages.astype(np.int64), alleys.astype(np.int64)


def _drawn(shape: tuple[int, int], points: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Columns (H, W) that contain one of the points (..., 2), (y, x). Points outside the plot are ignored."""
    mask = np.zeros(shape, np.bool_)
    y, x = points.reshape(-1, 2).T
    inside = (y >= 0) & (y < shape[0]) & (x >= 0) & (x < shape[1])
    mask[y[inside], x[inside]] = True
    return mask


def _discs(shape: tuple[int, int], centres: NDArray[np.int64], radii: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Columns (H, W) of discs around centres (N, 2), (y, x), of radii (N,) in metres."""
    reach = np.arange(-CHAMBER_RADIUS[1], CHAMBER_RADIUS[1] + 1)
    offsets = np.stack(np.meshgrid(reach, reach, indexing="ij"), axis=2).reshape(-1, 2)
    within = (offsets**2).sum(axis=1) <= radii[:, None] ** 2 + 1
    return _drawn(shape, (centres[:, None] + offsets)[within])


TUNNELS = Biome(
    name="tunnels",
    order=9,
    brush=tunnels,
    shares={"concrete": (0.17, 0.46), "reinforced": (0.05, 0.18), "lava": (0.015, 0.115)},
)
