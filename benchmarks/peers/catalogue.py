"""Who is measured: how each is installed and run, how its agents are counted, and what it does in a step."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.apis import BETWEEN, ENGINE, PARALLEL_ENV, VECTOR_ENV
from benchmarks.apis import ENGINE_WITH_RESETS as WITH_RESETS

GRID = ("magent2==0.3.4", "numpy==2.4.6", "pettingzoo==1.27.0", "gymnasium==1.4.0")
JAX = ("jaxmarl==0.2.0", "jax==0.10.2", "jaxlib==0.10.2", "numpy==2.4.6")
TORCH = ("vmas==1.5.2", "torch==2.13.0", "numpy==2.4.6")  # a build without CUDA where one is at hand
SISL = ("pettingzoo[sisl]==1.27.0", "numpy==2.4.6", "gymnasium==1.4.0")
MPE = ("mpe2==1.1.1", "numpy==2.4.6", "pettingzoo==1.27.0", "gymnasium==1.4.0")


@dataclass(frozen=True)
class Peer:
    """An environment and the way in which it is stepped."""

    name: str
    runner: str
    arguments: tuple[str, ...]
    requirements: tuple[str, ...] = ()
    """Packages of its virtual environment; none for Echelon, which runs on the benchmark's interpreter."""
    step: str = ""
    """What it does in a step, and how its agents are counted; peers with the same words share a note."""


ECHELON_STEP = (
    "Echelon: 5 physics ticks; heat, falls, projectiles, electronic warfare, destructible voxels, line of sight in "
    "three dimensions, 1,034 features an agent. The living count."
)
MAGENT_STEP = (
    "MAgent2: one move on a grid, attacks on neighbouring cells, 13 x 13 views in 5 layers. The living count. Through "
    "PettingZoo five dicts a step; its arrays have no agents' names, and 32 features beside the views."
)
SMAX_STEP = (
    "SMAX: 8 ticks of circles in an open plane that move, push and shoot, no terrain; 257 features an agent, the sides "
    "see within a radius. It steps its dead as well; counted without them in the first column. Its best "
    "batch: the fastest of 4 environments with 100 steps a call and 16, 64 and 256 with 25, in a trial on the same "
    "machine."
)
VMAS_STEP = "VMAS football: two physics steps of circles and a ball in a plane, no line of sight. None dies."
PURSUIT_STEP = "Pursuit: one move on a grid, 7 x 7 views in 3 layers. None dies."
TAG_STEP = "simple_tag: one physics step of circles in a plane, all agents see each other. None dies."

PEERS = (
    Peer("Echelon 10 v 10, engine, 16, novices", "echelon", ("battle", ENGINE, "novices"), (), ECHELON_STEP),
    Peer("the same, novices think between steps", "echelon", ("battle", BETWEEN, "novices"), (), ECHELON_STEP),
    Peer("Echelon 10 v 10, engine, 16, random", "echelon", ("battle", WITH_RESETS, "random"), (), ECHELON_STEP),
    Peer("Echelon 10 v 10, vector env, 16, random", "echelon", ("battle", VECTOR_ENV, "random"), (), ECHELON_STEP),
    Peer("Echelon 5 v 5, engine, 16, novices", "echelon", ("skirmish", ENGINE, "novices"), (), ECHELON_STEP),
    Peer("Echelon 5 v 5, PettingZoo, 1, random", "echelon", ("skirmish", PARALLEL_ENV, "random"), (), ECHELON_STEP),
    Peer("MAgent2 battle, map 24, PettingZoo", "magent2_battle", ("24", "pettingzoo"), GRID, MAGENT_STEP),
    Peer("MAgent2 battle, map 24, its arrays", "magent2_battle", ("24", "arrays"), GRID, MAGENT_STEP),
    Peer("MAgent2 battle, map 45, PettingZoo", "magent2_battle", ("45", "pettingzoo"), GRID, MAGENT_STEP),
    Peer("MAgent2 battle, map 45, its arrays", "magent2_battle", ("45", "arrays"), GRID, MAGENT_STEP),
    Peer("JaxMARL SMAX 10 v 10, its best batch", "smax", ("best",), JAX, SMAX_STEP),
    Peer("JaxMARL SMAX 10 v 10, 1, 1 step a call", "smax", ("1", "1"), JAX, SMAX_STEP),
    Peer("VMAS football 10 v 10, 1,024", "vmas_football", ("1024",), TORCH, VMAS_STEP),
    Peer("PettingZoo pursuit", "pursuit", (), SISL, PURSUIT_STEP),
    Peer("mpe2 simple_tag 10 v 10", "simple_tag", (), MPE, TAG_STEP),
)
NOT_MEASURED = {
    "smaclite": "it is on no package index",
    "PufferLib's MOBA": (
        "the packages 2.0.0 to 3.0.0 download raylib from GitHub while they are built, which needs more than a package "
        "index; 1.0.1 and pufferlib-core, which install, have no MOBA; tried on 2026-11-24"
    ),
}
