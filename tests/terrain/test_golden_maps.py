"""Maps are the same on every machine. `python tests/terrain/test_golden_maps.py` writes their hashes again."""

import hashlib
import json
import pathlib

import pytest

from echelon_env import make_config, scenarios
from echelon_env.config.biomes import BIOMES
from echelon_env.terrain import GENERATOR_VERSION, generate

HASHES = pathlib.Path(__file__).parent / "golden_maps.json"
CONFIGS = {
    **{name: scenario.config for name, scenario in scenarios().items()},
    **{f"all {biome}": make_config("battle", terrain={"biomes": (biome,)}) for biome in BIOMES},
    "mirrored": make_config("battle", terrain={"mirrored": True}),
}


def digest(name: str) -> str:
    """Hash of three maps of a configuration."""
    hashed = hashlib.sha256()
    for seed in range(3):
        hashed.update(generate(CONFIGS[name], seed).content_hash.encode())
    return hashed.hexdigest()[:16]


@pytest.mark.parametrize("name", CONFIGS)
def test_golden_maps(name):
    """Changed maps need a new GENERATOR_VERSION: recipes of the old one are then refused by version, not by hash."""
    golden = json.loads(HASHES.read_text())
    assert golden["generator"] == GENERATOR_VERSION, "write the hashes again"
    assert digest(name) == golden["maps"][name], "if this is intended, raise GENERATOR_VERSION"


if __name__ == "__main__":
    maps = {name: digest(name) for name in CONFIGS}
    HASHES.write_text(json.dumps({"generator": GENERATOR_VERSION, "maps": maps}, indent=2) + "\n")
