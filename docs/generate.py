"""Generates the reference pages, and tables in other pages, from the code: ``python docs/generate.py``."""

import ast
import importlib
import inspect
import itertools
import re
from collections.abc import Callable, Iterable
from dataclasses import fields
from pathlib import Path
from types import ModuleType

from scipy.stats import hypergeom

import echelon_env
from echelon_env.config.biomes import BIOMES, default_biomes
from echelon_env.config.catalog import DEFAULT_CATALOG
from echelon_env.config.scenario import scenarios
from echelon_env.engine.state import EVENT_MEANINGS
from echelon_env.envs import infos
from echelon_env.layout.actions import ACTION_DIM, BLOCKS
from echelon_env.layout.measures import MEASURES
from echelon_env.layout.observations import OBSERVATION_DIM, STREAMS, Clock, Unit
from echelon_env.spaces.actions import (
    DISCRETE_CHOICES,
    NEUTRAL_CHOICES,
    PARTS,
    Block,
    Part,
    action_space,
)
from echelon_env.spaces.describe import describe_action, describe_observation
from echelon_env.spaces.masks import MASK_SIZE, MASK_SLICES


def markdown(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table in Markdown."""
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
    return markdown(["", *rows[0][1:]], rows[1:])


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "-"
    if isinstance(value, (int, float)):
        return f"{value:g}" if value else "-"
    return str(value) if value is not None else "-"


STREAM_TABLE = markdown(
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

FEATURE_TABLE = markdown(
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

STATE_TABLE = markdown(
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
        for of, features in (("the battle", Clock), ("a mech", Unit))
        for feature in features
    ),
)

INFOS = (infos.__doc__ or "").partition("\n\n")[2].strip()
"""What the docstring of the module of infos says after its first line."""

OBSERVATIONS = f"""# Observations

The observation of one mech is {OBSERVATION_DIM} float32 values, finite and within the ranges below. The width is the
same for every class and scenario. Unused rows are zeros with a zero in the mask. Positions and velocities are in the
mech's frame (forward, left), so one policy can play either side. The observation of a dead mech
(`dead_agents="persist"`) is zeros except for the stream `objective`. Entries of an ability that the battle [switches
off](rules.md#ablations) are zeros, and so is what a mech would observe of a [hidden zone](rules.md#zone).

`observation="flat"` is one vector. `observation="dict"` has an array for each stream; their concatenation is the
vector. For a team as one agent the vectors of its mechs are concatenated, and streams have a leading axis of mechs.
With `mask_in_observation=True` the observation is a dict of `observation` and `action_mask`, see
[actions](actions.md).

{STREAM_TABLE}

The cells of `ego_map` are ordered from behind to ahead, then from right to left. `describe_observation` of the
parallel environment and of Gymnasium's (there with `.unwrapped`) describes every entry. It marks the entries that are
never filled because of the agent's class or an ability that is off. In `echelon_env.layout`, `STREAMS` has the slices
and `feature_names()` a name for every entry. The class features are a one-hot of the four shipped classes; a custom
class has zeros there.

## Features

For a stream with several rows, the table has the features of the first row. The other rows follow.

A unit is a constant of the battle. Velocities are clipped: jets make mechs faster than the fastest class's top speed.
The fastest class's top speed (7 m/s by default), the tallest class's height (4 m)
and the longest weapon range (50 m) are those of the whole catalog, also of classes and weapons that no roster has. The
map's size, height and diagonal and the largest zone radius are the scenario's: the diagonal is 68 m in `duel-open` and
141 m in `duel`, `skirmish` and `battle`, the radius 4.9, 8, 8 and 11.3 m. There the same number stands for other
metres. Damage by hazards is not in `hurt_forward` and `hurt_left`, and hits from straight above or below count 0 there.

{FEATURE_TABLE}

## The global state

For centralised training, `state(team)` of the parallel and of the batch environment is a float32 vector of all mechs
of a battle, visible or not, on the map rotated to the team's spawn: {len(Clock)} entries for the battle, then
{len(Unit)} for each mech, the team's first. `state_space` has its bounds. PettingZoo's `state()` is the blue team's
state. The rows of dead mechs are zeros. The state excludes projectiles, smoke, messages, the terrain, charges that are
left, what packs remember, and the timers of paint, suppression and wrecks.
`echelon_env.layout.state_streams(num_mechs)` has the slices.

{STATE_TABLE}

## Infos

{INFOS}
"""

ENTRY_TABLE = markdown(
    ("index", "block", "entry", "meaning"),
    ((str(entry.index), f"`{entry.block}`", entry.name, entry.meaning) for entry in describe_action()),
)


def _block_meaning(block: Block) -> str:
    names = [entry.name.lower() for entry in block.entries]
    if block.kind == "choice":
        return ", ".join(f"{i} {name}" for i, name in enumerate(["none"] * block.optional + names))
    return ", ".join(names) + (": 1 is on" if block.kind == "switches" else "")


BLOCK_TABLE = markdown(
    ("key", "space", "meaning"),
    ((f"`{block.name}`", f"`{action_space('dict')[block.name]}`", _block_meaning(block)) for block in BLOCKS),
)

IMPOSSIBLE = {
    "throttle": "no control, no speed",
    "strafe": "the same",
    "jet": "no control, no jump jets",
    "turn": "no control, no turn rate",
    "primary": "no control, empty mount, no charges left, still cooling down at the end of the decision",
    "secondary": "the same",
    "tertiary": "the same",
    "special": "the same",
    "vent": "",
    "target": "the contact row is empty",
    "electronics": "shut down, not carried",
    "display": "shut down: there will be no contacts",
}


def _part_values(part: Part) -> str:
    if len(part.entries) == 1:
        return ", ".join(f"{value:.3g}" for (value,) in part.values)
    names = [entry.name.lower() for entry in part.entries]
    return ", ".join(["none"] * (len(part.values) - len(names)) + names)


PART_TABLE = markdown(
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


_NUMBERS = {name: number for number, name in enumerate(DISCRETE_CHOICES)}
_MODES = ("fire", "turn left", "turn left, fire", "turn right", "turn right, fire")
_MOVES = [name for name in _NUMBERS if f"{name}, turn left, fire" in _NUMBERS]
CHOICE_TABLE = markdown(
    ("move", "alone", *_MODES),
    ((move, str(_NUMBERS[move]), *(str(_NUMBERS[f"{move}, {mode}"]) for mode in _MODES)) for move in _MOVES),
)
OTHER_CHOICES = "; ".join(f"{number} {name}" for name, number in [*_NUMBERS.items()][len(_MOVES) * (1 + len(_MODES)) :])

ACTIONS = f"""# Actions

The action of one mech is {ACTION_DIM} float32 values in [-1, 1]. Values outside are clipped. Non-finite values become 0
and are counted in `info["bad_actions"]`. Impossible parts (an empty mount, a weapon that is cooling down, an empty
contact row) and abilities that the battle [switches off](rules.md#ablations) have no effect. `explain_action` of the
parallel environment and of Gymnasium's (there with `.unwrapped`) explains what each part of an action would do, or why
it is refused. `describe_action` describes the entries, and lists those that an agent's class or its battle lacks.

A mech has one [target](rules.md#targets) for all its weapons. It keeps a chosen one as long as it sees it. Without
one it aims at the nearest enemy that it sees. The first five contact rows can be chosen.

{ENTRY_TABLE}

There are four formats of actions. `action="continuous"` is the vector itself. For a team as one agent the vectors of
its mechs are concatenated.

## The dict format

`action="dict"` is a dict with these entries. For a team as one agent each has a leading axis of mechs.

{BLOCK_TABLE}

## The multi-discrete format

`action="multi_discrete"` has one choice for each part. Messages are zeros. For a team as one agent the choices of its
mechs are concatenated.

{PART_TABLE}

**Masks** have {MASK_SIZE} entries per mech, part by part. A choice with 0 certainly has no effect in the coming
decision: it is equal to the neutral choice of the part, except for its echo in the next observation (`by_...`). A
choice with 1 may have an effect, or is the neutral choice, which is always allowed. A choice is masked if the reason in
the column "impossible" holds for the whole decision, or if the battle has switched the ability off. "No control" means
shut down and too hot to restart in time, or fallen for longer than the decision. A dead mech has only neutral choices.
`info["action_mask"]` is a tuple of int8 arrays, one for each part, for `gymnasium.spaces.MultiDiscrete.sample`.
`action_masks()` is flat, for sb3-contrib's `MaskablePPO`.

These masks need the environment. A player of an [evaluation](../guide/evaluate.md) has observations only:
`echelon_env.spaces.ObservedMasks(config)(observations)` computes masks from observations, which forbid slightly less.
Train a policy with the masks with which it will be evaluated.

## The discrete format

`action="discrete"` is one of {len(DISCRETE_CHOICES)} choices per mech, a `Discrete`, for DQN, QMIX and other methods
that need a single choice. For a team as one agent it is a `MultiDiscrete` with a choice for each mech. Most choices
combine a move, a turn and fire. `echelon_env.spaces.DISCRETE_CHOICES` has their names and values in order.

{CHOICE_TABLE}

The others are {OTHER_CHOICES}.

"Fire" pulls the triggers of the primary, the secondary and the tertiary weapon. No choice names a target: it is the
nearest enemy, until the mech no longer sees it. Moves and turns have full speed. Messages and the display are zeros.

**Masks** have {len(DISCRETE_CHOICES)} entries per mech. A choice with 0 has a part that certainly has no effect by the
rules above (of a volley: none of its weapons can fire), so a simpler choice does the same. `info["action_mask"]` is one
int8 array, for `gymnasium.spaces.Discrete.sample`; for a team it is a tuple of one for each mech.
"""

NOT_LOST, FALSE, DRAWN = 1000, (1, 10, 50, 100, 239), (32, 100, 300)
"""Battles of a scenario that a submission has not lost, false ones of these, and numbers of `--battles`."""


def _chance(false: int, drawn: int) -> str:
    """The probability that a draw has no false battle."""
    chance = hypergeom.pmf(0, NOT_LOST, false, drawn)
    return f"{100 * chance:.1f} %" if chance >= 0.0005 else "< 0.1 %" if chance else "0"


TABLES = {
    "mechs": _transposed(DEFAULT_CATALOG.mech_classes),
    "weapons": _transposed(DEFAULT_CATALOG.weapons),
    "materials": _transposed(DEFAULT_CATALOG.materials),
    "scenarios": markdown(
        ("scenario", "mechs", "map, m", "description"),
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
        f"`{name}`: {BIOMES[name].summary}\n\n![{name}](../pictures/{name}.png)" for name in default_biomes()
    ),
    "events": markdown(
        ("kind", "actor", "target", "amount"), ((kind, *meanings) for kind, meanings in EVENT_MEANINGS.items())
    ),
    "measures": markdown(
        ("measure", "unit", "meaning", "quotient of the sums", "main"),
        (
            (
                f"`{each.name}`",
                "share" if each.is_share else each.unit,
                each.meaning,
                f"`{each.sum}` / `{each.per}`" if each.per else "-",
                "yes" if each.main else "",
            )
            for each in MEASURES
        ),
    ),
    "draws": markdown(
        (f"false of {NOT_LOST:,}", *(f"{drawn} drawn" for drawn in DRAWN), "all"),
        ((str(false), *(_chance(false, drawn) for drawn in (*DRAWN, NOT_LOST))) for false in FALSE),
    ),
}


PUBLIC_MODULES = (
    "echelon_env",
    "echelon_env.envs",
    "echelon_env.config",
    "echelon_env.layout",
    "echelon_env.layout.measures",
    "echelon_env.spaces",
    "echelon_env.opponents",
    "echelon_env.wrappers",
    "echelon_env.wrappers.single",
    "echelon_env.wrappers.vector",
    "echelon_env.gpu",
    "echelon_env.interop",
    "echelon_env.evaluate",
    "echelon_env.evaluate.battle_observer",
    "echelon_env.evaluate.battle_record",
    "echelon_env.evaluate.battle_totals",
    "echelon_env.evaluate.card",
    "echelon_env.evaluate.cross_play",
    "echelon_env.evaluate.estimates",
    "echelon_env.evaluate.leaderboard",
    "echelon_env.evaluate.report",
    "echelon_env.evaluate.statistics_file",
    "echelon_env.evaluate.submission",
    "echelon_env.replays",
    "echelon_env.render",
    "echelon_env.terrain",
    "echelon_env.engine",
    "echelon_train",
    "echelon_train.config",
    "echelon_train.policy",
    "echelon_train.ppo",
    "echelon_train.checkpoints",
    "echelon_train.league",
    "echelon_train.report",
)
"""The modules whose `__all__` is the public interface."""

MODULES_OF_OTHERS = ("echelon_env.interop.benchmarl", "echelon_env.interop.torchrl")
"""Modules that import libraries which need not be installed; their classes are public, too."""


def assigned_docstring(module: ModuleType, name: str) -> str:
    """The string literal after the assignment of a name, in the module or in the module that it is imported from."""
    body = ast.parse(inspect.getsource(module)).body
    for statement in body:
        if isinstance(statement, ast.ImportFrom) and any(alias.name == name for alias in statement.names):
            return assigned_docstring(importlib.import_module(statement.module or ""), name)
    for statement, following in itertools.pairwise(body):
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and isinstance(following, ast.Expr):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            if name in {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}:
                return str(ast.literal_eval(following.value))
    return ""


def summaries(module: ModuleType) -> dict[str, str]:
    """The first line of the docstring of each public name of a module, "" if there is none."""
    found = {}
    for name in module.__all__:
        value = inspect.unwrap(getattr(module, name))
        documented = inspect.isclass(value) or inspect.isfunction(value) or inspect.ismodule(value)
        text = inspect.getdoc(value) if documented else assigned_docstring(module, name)
        found[name] = (text or "").split("\n\n")[0].replace("\n", " ").strip()
    return found


def classes_of(module: str) -> dict[str, str]:
    """The first line of the docstring of each class of a module that is read, but not imported."""
    classes = [node for node in _parsed(module).body if isinstance(node, ast.ClassDef)]
    return {node.name: (ast.get_docstring(node) or "").split("\n\n")[0].replace("\n", " ") for node in classes}


def signatures_of(module: str) -> dict[str, str]:
    """The parameters of each class of a module that is read, but not imported."""
    found = {}
    for node in _parsed(module).body:
        if isinstance(node, ast.ClassDef):
            (init,) = (each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__")
            del init.args.args[0]
            found[node.name] = ast.unparse(init.args)
    return found


def _parsed(module: str) -> ast.Module:
    return ast.parse((Path(echelon_env.__path__[0]).parent / f"{module.replace('.', '/')}.py").read_text())


def api(show: Callable[[str, str], str] = lambda module, public: f"`{public}`") -> str:
    """The page of public names, with one line for each. Names with the same docstring share a line.

    `show` writes a name of a module.
    """
    sections = []
    for name in PUBLIC_MODULES:
        module = importlib.import_module(name)
        names_of: dict[str, list[str]] = {}
        for public, summary in summaries(module).items():
            names_of.setdefault(summary, []).append(show(name, public))
        lines = [f"- {', '.join(names)}: {summary}" for summary, names in names_of.items()]
        sections.append(f"## `{name}`\n\n{(module.__doc__ or '').splitlines()[0]}\n\n" + "\n".join(lines) + "\n")
    for name in MODULES_OF_OTHERS:
        lines = [f"- {show(name, public)}: {summary}" for public, summary in classes_of(name).items()]
        sections.append(f"## `{name}`\n\n{ast.get_docstring(_parsed(name))}\n\n" + "\n".join(lines) + "\n")
    return "\n".join([API, *sections])


API = """# Public names

The names on this page are public: the changelog lists every change of them. Everything else, including other modules,
may change at any time. The docstring of a name (`help(name)`) has its arguments, shapes, units and errors. The
commands of `echelon` and their options, the ids of environments and suites, and the files that the commands write are
public, too.
"""


def _with_tables(page: Path) -> str:
    """A page with its marked tables generated again."""

    def table(match: re.Match[str]) -> str:
        return f"<!-- table: {match[1]} -->\n{TABLES[match[1]]}\n<!-- end -->"

    return re.sub(r"<!-- table: (\w+) -->.*?<!-- end -->", table, page.read_text(encoding="utf-8"), flags=re.DOTALL)


FOLDER = Path(__file__).parent / "reference"
WITH_TABLES = ("rules.md", "scenarios.md", "statistics.md", "submissions.md")

PAGES = {
    "observations.md": OBSERVATIONS,
    "actions.md": ACTIONS,
    "api.md": api(),
    **{name: _with_tables(FOLDER / name) for name in WITH_TABLES},
}
"""The pages of the reference that are generated, or have generated tables, by name."""


def main() -> None:
    """Write every page."""
    for name, text in PAGES.items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
