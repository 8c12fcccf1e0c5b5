"""The values that the arrays of a state can have: with others, compiled code could read or write anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.battle import BattleConfig
from echelon_env.engine.state import NO_MECH
from echelon_env.engine.tables import Tables


def check_values(config: BattleConfig, tables: Tables, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Raise ValueError for values that would make a kernel read or write outside an array.

    `arrays` are those of `BattleEngine.snapshot`.
    """
    for (name, field), (low, high) in _limits(config, tables, arrays).items():
        values = arrays[name][field] if field else arrays[name]
        if not (values.min() >= low and values.max() <= high):  # NaN fails
            raise ValueError(
                f"state of the battles: {name}.{field}: expected values from {low} to {high}, "
                f"got {values.min()} to {values.max()}"
            )
    _check_places(config, tables, arrays)
    guided = np.flatnonzero(tables.weapons["guided"])
    homing = np.isin(arrays["projectiles"]["weapon"], guided)
    if (arrays["projectiles"]["target"][homing] == NO_MECH).any():
        raise ValueError("state of the battles: projectiles.target: expected a mech for every guided projectile")
    for name, array in arrays.items():
        fields = {"": array} if array.dtype.names is None else {field: array[field] for field in array.dtype.names}
        for field, values in fields.items():
            if values.dtype.kind == "f" and not np.isfinite(values).all():
                raise ValueError(f"state of the battles: {name}.{field}: expected finite numbers")


def _check_places(config: BattleConfig, tables: Tables, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Raise ValueError for a mech of a started battle that is not inside the map with all of its box."""
    mechs, size = arrays["mechs"], config.terrain.size
    for axis, half in (("x", "half_length"), ("y", "half_width")):
        margin = tables.classes[half][mechs["mech_class"]]
        outside = (mechs[axis] < margin) | (mechs[axis] > size - margin)
        if outside[arrays["started"]].any():
            raise ValueError(
                f"state of the battles: mechs.{axis}: expected mechs inside the map of {size} m with all of their box"
            )


def _limits(
    config: BattleConfig, tables: Tables, arrays: Mapping[str, NDArray[Any]]
) -> dict[tuple[str, str], tuple[float, float]]:
    mechs, height = config.num_mechs, config.terrain.height
    packs = arrays["paint"].shape[1]
    return {
        ("voxels", ""): (0, len(tables.materials) - 1),
        ("visible", ""): (0, 2),
        ("order", ""): (0, mechs - 1),
        **{("mechs", name): (NO_MECH, mechs - 1) for name in ("contacts", "intel", "target")},
        **{("mechs", name): (0, 1) for name in ("team", "alive", "shutdown", "on_ground")},
        **{("mechs", name): (0, height) for name in ("z", "wreck_low", "wreck_high")},
        **{("mechs", name): (-1.001, 1.001) for name in ("facing_x", "facing_y")},  # a unit vector, rounded
        **{("mechs", name): (0, 2) for name in ("display", "radiates")},
        ("mechs", "mech_class"): (0, len(tables.classes) - 1),
        ("mechs", "pack"): (0, packs - 1),
        ("teams", "quarter_turns"): (0, 3),
        ("projectiles", "owner"): (0, mechs - 1),
        ("projectiles", "target"): (NO_MECH, mechs - 1),
        ("projectiles", "weapon"): (0, max(0, len(tables.weapons) - 1)),
        ("paint", "painter"): (0, mechs - 1),
        ("clouds", "team"): (0, 1),
        ("battles", "num_projectiles"): (0, arrays["projectiles"].shape[1]),
        ("battles", "num_clouds"): (0, arrays["clouds"].shape[1]),
        ("battles", "num_bursts"): (0, 0),
        ("battles", "num_events"): (0, arrays["events"].shape[1]),
        ("battles", "first_team"): (0, 1),
    }
