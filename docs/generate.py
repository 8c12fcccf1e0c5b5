"""Writes the reference pages, and the tables in pages, that follow from the code: ``python docs/generate.py``."""

import ast
import importlib
import inspect
import itertools
import re
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from types import ModuleType

from echelon_env.config.biomes import BIOMES, default_biomes
from echelon_env.config.catalog import DEFAULT_CATALOG
from echelon_env.config.scenario import scenarios
from echelon_env.engine.state import EVENT_MEANINGS
from echelon_env.layout.actions import ACTION_DIM
from echelon_env.layout.observations import MAP_SIDE, OBSERVATION_DIM, STREAMS, Clock, MapCell, Unit
from echelon_env.spaces.actions import BLOCKS, MASK_SIZE, MASK_SLICES, NEUTRAL_CHOICES, PARTS, Block, Part, action_space
from echelon_env.spaces.describe import describe_action, describe_observation
from echelon_env.testing import CHECKS


def _markdown(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [list(header), *map(list, rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join(f"| {' | '.join(line)} |".replace("|  |", "| |") for line in lines)


def _transposed(entries: Iterable[object]) -> str:
    """One column per entry of a catalogue, one row per field."""
    columns = list(entries)
    rows = []
    for field in fields(columns[0]):  # type: ignore[arg-type]
        label, unit = field.name.replace("_", " "), field.metadata.get("unit")
        rows.append(
            [f"{label}, {unit}" if unit else label, *(_cell(getattr(column, field.name)) for column in columns)]
        )
    return _markdown(["", *rows[0][1:]], rows[1:])


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "-"
    if isinstance(value, (int, float)):
        return f"{value:g}" if value else "-"
    return str(value) if value is not None else "-"


STREAM_TABLE = _markdown(
    ("stream", "indices", "rows", "shape in the dict format", "a row is"),
    (
        (
            f"`{stream.name}`",
            f"{stream.start} to {stream.stop - 1}",
            str(stream.rows),
            str(stream.shape),
            str(stream.features.__doc__),
        )
        for stream in STREAMS.values()
    ),
)

FEATURE_TABLE = _markdown(
    ("index", "stream", "feature", "range", "unit", "meaning"),
    (
        (
            str(feature.index),
            feature.stream,
            feature.name.rsplit(".", 1)[1],
            f"[{feature.low:g}, {feature.high:g}]",
            feature.unit,
            feature.meaning,
        )
        for feature in describe_observation()
        if feature.row == 0
    ),
)

STATE_TABLE = _markdown(
    ("of", "index", "feature", "range", "unit", "meaning"),
    (
        (
            of,
            str(int(feature)),
            feature.name.lower(),
            f"[{feature.low:g}, {feature.high:g}]",
            feature.unit,
            feature.meaning,
        )
        for of, features in (("the battle", Clock), ("a mech", Unit), ("a cell", MapCell))
        for feature in features
    ),
)

OBSERVATIONS = f"""# Observations

The observation of one mech: {OBSERVATION_DIM} float32 values, finite and within the ranges below. Widths are the same
for every class and scenario; rows that a suite or a roster does not fill are zeros with a zero in the mask. Positions
and velocities are in the mech's own frame (forward, left), so one policy can play either side. The observation of a
dead mech (`dead_agents="persist"`) is zeros but for the stream `objective`.

`observation="flat"` is one vector. `observation="dict"` has an array for each stream, whose concatenation is the
vector. A team as one agent observes its mechs' vectors one after the other, or streams with a leading axis of mechs.
With `mask_in_observation=True` the observation is a dict of `observation` and `action_mask`, see [actions](actions.md).

{STREAM_TABLE}

The cells of `ego_map` go from behind to ahead, and within that from right to left; those of `battle_map` by rows of the
turned map. `describe_observation` of the parallel environment and of Gymnasium's (there with `.unwrapped`) reports
the same for every entry, and the entries that an agent's class never fills. In `echelon_env.layout`, `STREAMS` has the
slices and `feature_names()` a name for every entry. The class features know the game's four classes by name; a
custom class has zeros there.

## Features

Of a stream of several rows, the features of its first row; the others follow row by row.

{FEATURE_TABLE}

## The global state

For centralised training `state(team)` of the parallel and of the batch environment (`state_space` its bounds) gives
all mechs of a battle, seen or not, in one float32 vector, on the map turned to the team's spawn: {len(Clock)} entries
of the battle, then {len(Unit)} for each mech, the team's first, then the map, {MAP_SIDE} x {MAP_SIDE} x {len(MapCell)}
as in `battle_map`. PettingZoo's `state()` is blue's. Projectiles, smoke, messages and changes of the terrain
are not in it. `echelon_env.layout.state_streams(num_mechs)` has the slices.

{STATE_TABLE}
"""

ENTRY_TABLE = _markdown(
    ("index", "block", "entry", "meaning"),
    ((str(entry.index), f"`{entry.block}`", entry.name, entry.meaning) for entry in describe_action()),
)


def _block_meaning(block: Block) -> str:
    names = [entry.name.lower() for entry in block.entries]
    if block.kind == "choice":
        return ", ".join(f"{i} {name}" for i, name in enumerate(["none"] * block.optional + names))
    return ", ".join(names) + (": 1 is on" if block.kind == "switches" else "")


BLOCK_TABLE = _markdown(
    ("key", "space", "meaning"),
    ((f"`{block.name}`", f"`{action_space('dict')[block.name]}`", _block_meaning(block)) for block in BLOCKS),
)

IMPOSSIBLE = {
    "throttle": "no control, no speed",
    "strafe": "likewise",
    "jet": "no control, no jump jets",
    "turn": "no control, no turn rate",
    "primary": "no control, no weapon there, no charges left, still cooling down at the end of the decision",
    "secondary": "likewise",
    "tertiary": "likewise",
    "special": "likewise",
    "vent": "",
    "target": "the contact row is empty, no weapon can fire",
    "electronics": "shut down, not carried",
    "display": "shut down: there will be no contacts",
}


def _part_values(part: Part) -> str:
    if len(part.entries) == 1:
        return ", ".join(f"{value:g}" for (value,) in part.values)
    names = [entry.name.lower() for entry in part.entries]
    return ", ".join(["none"] * (len(part.values) - len(names)) + names)


PART_TABLE = _markdown(
    ("part", "choices", "meaning", "neutral", "in the mask", "impossible"),
    (
        (
            f"`{part.name}`",
            str(len(part.values)),
            _part_values(part),
            str(neutral),
            f"{MASK_SLICES[part.name].start} to {MASK_SLICES[part.name].stop - 1}",
            IMPOSSIBLE[part.name],
        )
        for part, neutral in zip(PARTS, NEUTRAL_CHOICES, strict=True)
    ),
)

ACTIONS = f"""# Actions

The action of one mech: {ACTION_DIM} float32 values in [-1, 1]. Values outside are cut, values that are not finite
become 0 and are counted in `info["bad_actions"]`; what cannot be carried out (an empty mount, a weapon that is
cooling, a contact that is not there) does nothing. `explain_action` of the parallel environment and of Gymnasium's
(there with `.unwrapped`) says what each part of an action would do and why a part is refused, `describe_action` what
the entries are and which an agent's class lacks.

{ENTRY_TABLE}

Three formats stand for such vectors. `action="continuous"` is the vector itself; a team as one agent concatenates its
mechs' vectors.

## The dict format

`action="dict"`: a dict with these entries; of a team as one agent each has a leading axis of mechs.

{BLOCK_TABLE}

## The multi-discrete format

`action="multi_discrete"`: one choice for each part, messages are zeros; a team as one agent concatenates its mechs'
choices.

{PART_TABLE}

**Masks** have {MASK_SIZE} entries a mech, the parts one after the other: 0 is certainly without effect in the coming
decision, the same as the neutral choice of the part but for its echo in the next observation (`has_target`,
`is_target`, `by_...`); 1 may have an effect, or is the neutral choice, which is always allowed. Impossible is what
the table says where it holds for the whole decision: "no control" is shut down and too hot to restart in time, or on
the ground for longer. A dead mech has the neutral choices only. `info["action_mask"]` is a tuple of int8 arrays, one
for each part, as `gymnasium.spaces.MultiDiscrete.sample` takes them; `action_masks()` is
flat, as sb3-contrib's `MaskablePPO` takes it.
"""

TABLES = {
    "mechs": _transposed(DEFAULT_CATALOG.mech_classes),
    "weapons": _transposed(DEFAULT_CATALOG.weapons),
    "materials": _transposed(DEFAULT_CATALOG.materials),
    "scenarios": _markdown(
        ("scenario", "mechs", "map, m", "what it is"),
        (
            (
                f"`{scenario.name}`",
                f"{len(scenario.config.blue)} v {len(scenario.config.red)}",
                str(scenario.config.terrain.size),
                scenario.description,
            )
            for scenario in scenarios().values()
        ),
    ),
    "biomes": "\n\n".join(
        f"`{name}`: {BIOMES[name].summary}\n\n![{name}](pictures/{name}.png)" for name in default_biomes()
    ),
    "checks": _markdown(("name", "property"), ((f"`{name}`", holds) for name, holds in CHECKS.items())),
    "events": _markdown(
        ("kind", "actor", "target", "amount"), ((kind, *meanings) for kind, meanings in EVENT_MEANINGS.items())
    ),
}


PUBLIC_MODULES = (
    "echelon_env",
    "echelon_env.envs",
    "echelon_env.config",
    "echelon_env.layout",
    "echelon_env.spaces",
    "echelon_env.opponents",
    "echelon_env.wrappers",
    "echelon_env.evaluate",
    "echelon_env.evaluate.cross_play",
    "echelon_env.evaluate.pictures",
    "echelon_env.evaluate.report",
    "echelon_env.evaluate.statistics",
    "echelon_env.testing",
    "echelon_env.render",
    "echelon_env.terrain",
    "echelon_env.engine",
    "echelon_train",
    "echelon_train.config",
    "echelon_train.policy",
    "echelon_train.ppo",
    "echelon_train.checkpoints",
    "echelon_train.league",
    "echelon_train.runs.sweep",
)
"""The modules whose `__all__` is the public interface."""


def _assigned_docstring(module: ModuleType, name: str) -> str:
    """The string literal after the assignment of a name, in the module or in the one that it is imported from."""
    body = ast.parse(inspect.getsource(module)).body
    for statement in body:
        if isinstance(statement, ast.ImportFrom) and any(alias.name == name for alias in statement.names):
            return _assigned_docstring(importlib.import_module(statement.module or ""), name)
    for statement, following in itertools.pairwise(body):
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and isinstance(following, ast.Expr):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            if name in {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}:
                return str(ast.literal_eval(following.value))
    return ""


def summaries(module: ModuleType) -> dict[str, str]:
    """The first line of the docstring of each public name of a module, "" where there is none."""
    found = {}
    for name in module.__all__:
        value = inspect.unwrap(getattr(module, name))
        documented = inspect.isclass(value) or inspect.isfunction(value) or inspect.ismodule(value)
        text = inspect.getdoc(value) if documented else _assigned_docstring(module, name)
        found[name] = (text or "").split("\n\n")[0].replace("\n", " ").strip()
    return found


def _api() -> str:
    """The page of public names, one line for each; names with the same docstring share one."""
    sections = []
    for name in PUBLIC_MODULES:
        module = importlib.import_module(name)
        names_of: dict[str, list[str]] = {}
        for public, summary in summaries(module).items():
            names_of.setdefault(summary, []).append(f"`{public}`")
        lines = [f"- {', '.join(names)}: {summary}" for summary, names in names_of.items()]
        sections.append(f"## `{name}`\n\n{(module.__doc__ or '').splitlines()[0]}\n\n" + "\n".join(lines) + "\n")
    return "\n".join([API, *sections])


API = """# Public names

The names on this page are public: a release that changes one of them says so in the changelog. Everything else, other
modules included, may change at any time. The arguments, shapes, units and errors of a name are in its docstring
(`help(name)`). Also public are the commands of `echelon` and their options, the ids of environments and suites, and the
files that the commands write.
"""


def _with_tables(page: Path) -> str:
    """A page whose marked tables are those of the code."""

    def table(match: re.Match[str]) -> str:
        return f"<!-- table: {match[1]} -->\n{TABLES[match[1]]}\n<!-- end -->"

    return re.sub(r"<!-- table: (\w+) -->.*?<!-- end -->", table, page.read_text(encoding="utf-8"), flags=re.DOTALL)


GAME = _with_tables(Path(__file__).parent / "game.md")
MAPS = _with_tables(Path(__file__).parent / "maps.md")
TESTING = _with_tables(Path(__file__).parent / "testing.md")

PAGES = {
    "observations.md": OBSERVATIONS, "actions.md": ACTIONS, "game.md": GAME, "maps.md": MAPS, "testing.md": TESTING,
    "api.md": _api(),
}  # fmt: skip


def main() -> None:
    """Write every page beside this file."""
    for name, text in PAGES.items():
        (Path(__file__).parent / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
