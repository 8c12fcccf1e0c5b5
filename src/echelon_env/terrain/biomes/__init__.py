"""Biomes: one brush per biome, which fills a plot of the map with its materials."""

from echelon_env.terrain.biomes.barrens import BARRENS
from echelon_env.terrain.biomes.bunkers import BUNKERS
from echelon_env.terrain.biomes.canal import CANAL
from echelon_env.terrain.biomes.forest import FOREST
from echelon_env.terrain.biomes.glass import GLASS
from echelon_env.terrain.biomes.greenhouse import GREENHOUSE
from echelon_env.terrain.biomes.jungle import JUNGLE
from echelon_env.terrain.biomes.mine import MINE
from echelon_env.terrain.biomes.plaza import PLAZA
from echelon_env.terrain.biomes.plot import Biome, Brush, Plot
from echelon_env.terrain.biomes.refinery import REFINERY
from echelon_env.terrain.biomes.relay import RELAY
from echelon_env.terrain.biomes.servers import SERVERS
from echelon_env.terrain.biomes.spires import SPIRES
from echelon_env.terrain.biomes.tunnels import TUNNELS
from echelon_env.terrain.biomes.urban import URBAN
from echelon_env.terrain.biomes.volcano import VOLCANO

BIOMES: dict[str, Biome] = {
    "urban": URBAN,
    "plaza": PLAZA,
    "spires": SPIRES,
    "canal": CANAL,
    "refinery": REFINERY,
    "servers": SERVERS,
    "greenhouse": GREENHOUSE,
    "relay": RELAY,
    "bunkers": BUNKERS,
    "tunnels": TUNNELS,
    "mine": MINE,
    "volcano": VOLCANO,
    "glass": GLASS,
    "barrens": BARRENS,
    "forest": FOREST,
    "jungle": JUNGLE,
}
"""The biomes by name, those of `map_config.BIOMES`."""

__all__ = ["BIOMES", "Biome", "Brush", "Plot"]
