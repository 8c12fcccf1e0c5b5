"""Generates the pages of the environments and of the gallery's battles, from the configurations and stored results."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import gymnasium
from benchmarks.baselines import ladder, results
from benchmarks.baselines.judge import current
from benchmarks.baselines.page import Entry, cross_table, entries, table
from benchmarks.baselines.plan import GENERALIZATION, SUITE
from PIL import Image

from docs import gallery
from docs.generate import markdown
from docs.site.staging import DOCS, write
from echelon_env import BattleConfig, Scenario, scenarios
from echelon_env.config.biomes import BIOMES, default_biomes
from echelon_env.render.map_picture import map_picture
from echelon_env.terrain import generate

MAP_SEEDS, MAP_SIDE, GAP = range(4), 420, 8  # pixels
BATTLES = {entry.scenario: entry for entry in gallery.ENTRIES}
IDS = {spec.kwargs["scenario"]: name for name, spec in gymnasium.registry.items() if name.startswith("echelon/")}


def roster(mechs: tuple[str, ...]) -> str:
    """A team's mech classes with their numbers."""
    return ", ".join(f"{number} {name}" if number > 1 else name for name, number in Counter(mechs).items())


def facts(scenario: Scenario) -> list[tuple[str, str]]:
    """What defines a scenario, in words and numbers."""
    config = scenario.config
    terrain, zone = config.terrain, config.map_config
    seconds = config.max_steps * config.decision_seconds
    names = [f"`{name}`" for name in terrain.biomes]
    off = [name for name, on in vars(config.abilities).items() if not on]
    return [
        ("Gymnasium, PettingZoo", f"`{IDS[scenario.name]}`"),
        ("mechs", f"{len(config.blue)} v {len(config.red)}"),
        *(
            [("both teams", roster(config.blue))]
            if config.blue == config.red
            else [("blue", roster(config.blue)), ("red", roster(config.red))]
        ),
        ("map", f"{terrain.size} m x {terrain.size} m, {terrain.height} m high"),
        ("biomes", f"all {len(names)}" if terrain.biomes == default_biomes() else ", ".join(names)),
        ("zone", f"radius {zone.min_zone_radius:.1f} to {zone.max_zone_radius:.1f} m"),
        ("a team wins", f"by elimination, or with {config.zone.score_to_win:g} s of the zone"),
        ("time limit", f"{config.max_steps} decisions of {config.decision_seconds:g} s: {seconds:g} s"),
        ("enemies", "always visible" if config.observability == "full" else "visible only when sensed"),
        ("banned weapons", ", ".join(f"`{name}`" for name in config.banned_weapons) or "none"),
        ("abilities switched off", ", ".join(f"`{name}`" for name in off) or "none"),
    ]


def differences(config: Mapping[str, Any], default: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """The fields of a configuration, as plain data, that differ from the defaults."""
    for name, value in config.items():
        if isinstance(value, Mapping):
            yield from differences(value, default[name], f"{prefix}{name}.")
        elif value != default[name]:
            shown = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else value
            yield f"`{prefix}{name}`", f"{shown}"


def map_statistics(scenario: str) -> str:
    """The row of a scenario in the measured table of reference/scenarios.md, with its head."""
    text = (DOCS / "reference" / "scenarios.md").read_text(encoding="utf-8")
    (measured,) = re.findall(r"<!-- measured: scenarios -->\n(.*?)\n<!-- end -->", text, re.DOTALL)
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in measured.splitlines()]
    (row,) = [line for line in lines if line[0] == f"`{scenario}`"]
    return markdown(lines[0][1:], [row[1:]])


def draw_maps(scenario: Scenario) -> Image.Image:
    """Some maps of a scenario from above, in two rows."""
    pictures = [map_picture(generate(scenario.config.map_config, seed), MAP_SIDE) for seed in MAP_SEEDS]
    sheet = Image.new("RGB", (2 * MAP_SIDE + GAP,) * 2, "#202327")
    for number, picture in enumerate(pictures):
        sheet.paste(picture, (number % 2 * (MAP_SIDE + GAP), number // 2 * (MAP_SIDE + GAP)))
    return sheet


def result_sections(scenario: str, rows: list[Mapping[str, Any]]) -> Iterator[str]:
    """The results of scripted levels, the champion and the baselines in a scenario, a table for each suite."""
    for suite in (SUITE, GENERALIZATION):
        runs: dict[str, list[Mapping[str, Any]]] = {}
        for row in rows:
            # rows of the generalization suite are named by the scenario in which a policy was trained
            if row["suite"] == suite and scenario in row["outcomes"]:
                runs.setdefault(row["method"], []).append(row)
        found = [Entry(scenario, method, tuple(each)) for method, each in runs.items()]
        if found:
            ordered = sorted(found, key=lambda entry: -entry.mean.estimate)
            yield f"On the suite `{suite}`:\n\n{table(ordered)}\n"


RESULTS = """Battles won against each opponent in per cent, with 95 % intervals over maps, from
`docs/results/baselines.json`. [Baselines](../results/baselines.md)
explains methods and columns, [champions](../results/champions.md) the champion.
"""
LADDER = """Battles that each player (rows) won of {battles} against each other one (columns), in per cent. *Mean score*
counts a draw as half a win; its 95 % interval is over {maps} maps. The rows are in `docs/results/ladders.json`. This
command plays the same battles:

```
echelon evaluate {players} --scenario {name} --battles {battles}
```

{pairs}
"""


def results_of(scenario: str, rows: list[Mapping[str, Any]], ladders: list[Mapping[str, Any]]) -> str:
    """The results in a scenario: on the suites, or else of the champion and the scripted levels against each other."""
    if scenario not in ladder.without_suite():
        return "\n".join([RESULTS, *result_sections(scenario, rows)])
    pairs, players = cross_table(entries(ladders, scenario, None)), " ".join(ladder.PLAYERS)
    return LADDER.format(name=scenario, battles=ladder.BATTLES, maps=ladder.BATTLES // 2, players=players, pairs=pairs)


def page(scenario: Scenario, results: str) -> str:
    """The page of a scenario."""
    name, entry = scenario.name, BATTLES[scenario.name]
    picture = f"{name}-moving" if name == gallery.MOVING_SCENARIO else name
    default, own = BattleConfig().to_dict(), scenario.config.to_dict()
    changes = (
        markdown(("field", "value"), differences(own, default)) if own != default else "None: it has the defaults."
    )
    replay = entry.read()
    losses = html.escape(gallery.caption(gallery.story(replay)))
    biomes = "\n".join(f"- `{biome}`: {BIOMES[biome].summary}" for biome in scenario.config.terrain.biomes)
    return f"""# {name}

{" ".join(scenario.description.split())}

{linked_picture(name, f"../battles/{picture}.webp", "..")}

*{losses}* {entry.blue} v {entry.red}: {gallery.result(replay)}.
[Watch the battle](site:../battles/{name}.html), or [all battles](../watch.md).

```python
import gymnasium

import echelon_env

env = gymnasium.make("{IDS[name]}", control="team", opponent="novice")  # one agent
env = echelon_env.parallel_env("{name}")  # PettingZoo: every mech is an agent
```

{markdown(("", f"`{name}`"), facts(scenario))}

## Differences from the defaults

{changes}

[Settings](../reference/settings.md) has the meaning of every field.

## Maps

![Four maps of {name} from above](../pictures/maps-{name}.webp)

The maps of the seeds 0 to 3. `echelon maps --scenario {name} --out {name}.png` writes a picture of more maps, with
captions and a legend. The biomes of a map's quadrants are sampled from:

{biomes}

Means over 100 maps, see [statistics](../reference/scenarios.md#statistics):

{map_statistics(name)}

## Results

{results}"""


def linked_picture(name: str, picture: str, root: str) -> str:
    """A picture that leads to the page of a battle."""
    width, height = gallery.SIZE
    return (
        f'<a class="battle" href="{root}/battles/{name}.html"><img src="{picture}" width="{width}" height="{height}" '
        f'alt="A battle of {name}; a click plays it"></a>'
    )


INDEX = """# Environments

A scenario is a named battle: rosters, map, zone, rules. Each has an id for Gymnasium and PettingZoo, and its name is
accepted by every environment and command. [Scenarios](../guide/scenarios.md) describes how to write one.

"""


def index() -> str:
    """The page of all environments."""
    rows = [
        (
            f"[{scenario.name}]({scenario.name}.md)",
            f"{len(scenario.config.blue)} v {len(scenario.config.red)}",
            str(scenario.config.terrain.size),
            f"`{IDS[scenario.name]}`",
            " ".join(scenario.description.split()),
        )
        for scenario in scenarios().values()
    ]
    tree = "\n".join(scenarios())
    return (
        f"{INDEX}{cards('.', '..')}\n\n{markdown(('scenario', 'mechs', 'map, m', 'id', 'description'), rows)}\n\n"
        f"```{{toctree}}\n:hidden:\n\n{tree}\n```\n"
    )


def cards(pages: str, root: str) -> str:
    """A picture of every scenario's battle with its name, which leads to a page in the folder `pages`."""
    width, height = gallery.SIZE
    items = "\n".join(
        f'<a href="{pages}/{entry.scenario}.html"><img src="{root}/battles/{entry.scenario}.webp" width="{width}" '
        f'height="{height}" loading="lazy" alt=""><span>{entry.scenario}</span></a>'
        for entry in gallery.ENTRIES
    )
    return f'<div class="cards">\n{items}\n</div>'


WATCH = """# Watch battles

A battle of ten against ten. The engine runs in your browser as WebAssembly, simulates the battle again from the
recorded actions, and compares every state with the recorded one. [Keys](reference/replays.md#keys-of-a-page) move the
camera and the time. [Open the battle in a separate page](site:battles/battle.html).

<iframe class="battle" src="battles/battle.html" title="A battle of ten against ten" loading="lazy"></iframe>

## A battle of every scenario

Scripted experts and the shipped [champions](results/champions.md), on maps of the evaluation.

"""


def watch() -> str:
    """The page on which battles play."""
    lines = [
        f"- [{entry.scenario}](site:battles/{entry.scenario}.html), {entry.blue} v {entry.red}: "
        f"{html.escape(gallery.caption(gallery.story(replay)))} Result: {gallery.result(replay)}."
        for entry, replay in ((entry, entry.read()) for entry in gallery.ENTRIES)
    ]
    return WATCH + cards("battles", ".") + "\n\n" + "\n".join(lines) + "\n"


def stage(source: Path) -> None:
    """Write the pages and their pictures into the site's source tree."""
    rows, ladders = (current(results.read(file)) for file in (results.FILE, ladder.FILE))
    for scenario in scenarios().values():
        found = results_of(scenario.name, rows, ladders)
        write(source / "environments" / f"{scenario.name}.md", page(scenario, found))
        draw_maps(scenario).save(source / "pictures" / f"maps-{scenario.name}.webp", quality=80)
    write(source / "environments" / "index.md", index())
    write(source / "watch.md", watch())
