"""The gallery: a battle of every scenario as a replay and a picture, in ``docs/gallery``.

``python docs/gallery.py record`` plays the battles. ``pictures`` draws them and a moving picture, with Playwright and
Chromium. ``readme`` writes the gallery's page, and ``pages FOLDER`` a web page of each battle and one of all.
"""

import argparse
import html
import io
import shutil
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from echelon_env.config.scenario import make_config
from echelon_env.engine.state import DEATH, DRAW, HIT, REASONS, SPLASH
from echelon_env.evaluate import BASELINES, Player, baseline, checkpoint_player, evaluation_seed
from echelon_env.render.palette import mech_names
from echelon_env.replays import Replay, read_replay, record_battle, write_page, write_replay

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "echelon_env"
GALLERY = ROOT / "docs" / "gallery"
SEED = 7
"""Of the evaluation on whose maps the battles are."""


class Camera(NamedTuple):
    """Where the page's camera is: above and around a point of the ground."""

    x: float  # m
    y: float
    distance: float  # m
    azimuth: float  # rad
    elevation: float  # rad


class Entry(NamedTuple):
    """A battle."""

    scenario: str  # and the name of its files
    blue: str  # a baseline, or the folder of another champion
    red: str
    number: int  # of the map, see `evaluation_seed`

    def read(self) -> Replay:
        """Its replay."""
        return read_replay(GALLERY / f"{self.scenario}.replay")


ENTRIES = (
    Entry("battle", "champion", "expert", 3),
    Entry("company-city", "expert", "expert", 1),
    Entry("skirmish-jungle", "champion", "expert", 13),
    Entry("company", "champion", "expert", 3),
    Entry("battle-industry", "champion", "champion", 6),
    Entry("octet", "champion", "expert", 13),
    Entry("ambush", "expert", "expert", 0),
    Entry("hunt", "expert", "expert", 15),
    Entry("skirmish", "champion", "expert", 11),
    Entry("skirmish-open", "expert", "champion", 6),
    Entry("skirmish-unseen", "champion", "expert", 28),
    Entry("skirmish-seen", "champion", "expert", 5),
    Entry("trio", "champion", "expert", 4),
    Entry("pair-city", "expert", "expert", 1),
    Entry("duel", "champion", "expert", 20),
    Entry("duel-cover", "expert", "champion", 29),
    Entry("duel-open", "champion", "expert", 24),
)


class Story(NamedTuple):
    """What a battle's picture and its caption show."""

    time: float  # of the picture, in decisions: the middle of the heaviest fight
    camera: Camera
    losses: tuple[str, ...]  # in their order


def story(replay: Replay) -> Story:
    """What happens in a battle."""
    names = mech_names(replay.config)
    hits, losses = [], []
    for decision, engine in enumerate(replay.play()):
        battle = engine.state.battles[0]
        events = engine.state.events[0, : battle["num_events"]]
        for event in events[np.isin(events["kind"], (HIT, SPLASH))]:
            hits.append((decision, event["x"], event["y"], event["amount"]))
        for event in events[events["kind"] == DEATH]:
            losses.append(f"{names[event['actor']]} ({decision * replay.config.decision_seconds:.0f} s)")
    decisions, x, y, amounts = np.array(hits).T
    fought = np.convolve(np.bincount(decisions.astype(int), amounts, replay.decisions + 1), np.ones(WINDOW), "same")
    moment = int(np.clip(fought.argmax(), 1, replay.decisions - 1))
    now = abs(decisions - moment) <= WINDOW // 2
    centre = [float(np.average(each[now], weights=amounts[now] + 1e-9)) for each in (x, y)]
    spread = float(np.hypot(x[now] - centre[0], y[now] - centre[1]).max())
    return Story(moment + 0.6, Camera(*centre, min(max(22.0, 2.2 * spread), 44.0), AZIMUTH, ELEVATION), tuple(losses))


def caption(told: Story) -> str:
    """A sentence on a battle."""
    if not told.losses:
        return "No mech is lost."
    shown = ", ".join(told.losses[:MOST_LOSSES])
    return f"Lost in this order: {shown}{' and others' * (len(told.losses) > MOST_LOSSES)}."


WINDOW = 17  # decisions of a fight
MOST_LOSSES = 10
AZIMUTH, ELEVATION = 1.0, 0.75  # rad
SIZE, MOVING_SIZE = (960, 540), (640, 360)  # pixels
MOVING_SCENARIO, MOVING_FRAMES = "battle", 80
FRAME_SECONDS = 0.1
MOVING_TURN = -0.008  # rad per frame

CHROMIUM_OPTIONS = ("--no-sandbox", "--enable-unsafe-swiftshader", "--use-gl=angle", "--use-angle=swiftshader")
STYLE = """:root { --foot: 0px }
footer, #inspector, #card, .roster:has(:nth-child(15)) .mech { display: none }
@media (width < 800px) { .roster { display: none } }"""
README = f"""# Gallery

A battle of every scenario, on maps of the evaluation with seed {SEED}: scripted experts and the shipped
[champions](../results/champions.md), blue's player first. The command below a picture writes a
[page](../guide/replays.md) that shows the whole battle in a browser; `make gallery` writes all of them into
`build/gallery`.

`python docs/gallery.py record` writes the replays and this page, `python docs/gallery.py pictures` the pictures.
"""
INDEX = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Echelon: battles</title>
<style>
body { margin: 24px; background: #13171f; color: #e8ebf0; font: 15px/1.45 system-ui, sans-serif }
main { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 400px), 1fr)); gap: 24px }
a { color: inherit; text-decoration: none }
a:hover h2 { text-decoration: underline }
img { width: 100%; height: auto; border-radius: 6px }
h2 { margin: 4px 0; font-size: 17px }
p { margin: 2px 0 }
small { color: #aab4c4 }
</style>
<h1>Battles</h1>
<main>
"""


def player(name: str) -> Player:
    """A player of an entry."""
    return baseline(name) if name in BASELINES else checkpoint_player(PACKAGE / name, name=name)


def record() -> None:
    """Play all battles, and write their replays and the gallery's page."""
    GALLERY.mkdir(exist_ok=True)
    for entry in ENTRIES:
        blue = player(entry.blue)
        red = blue if entry.red == entry.blue else player(entry.red)
        seed = evaluation_seed(SEED, entry.number)
        write_replay(
            GALLERY / f"{entry.scenario}.replay", record_battle(blue, red, make_config(entry.scenario), seed=seed)
        )
    write_readme()


def result(replay: Replay) -> str:
    """How a battle ends."""
    *_, engine = replay.play()
    battle, (blue, red) = engine.state.battles[0], engine.state.teams[0]
    who = "a draw" if battle["winner"] == DRAW else f"{('blue', 'red')[battle['winner']]} wins"
    how = REASONS[battle["reason"]].replace("_", " ")
    seconds = replay.decisions * replay.config.decision_seconds
    left = f"{blue['mechs_alive']} of {len(replay.config.blue)} and {red['mechs_alive']} of {len(replay.config.red)}"
    return f"{who} by {how} after {seconds:.0f} s, {blue['score']:.0f} to {red['score']:.0f} points, mechs left: {left}"


def write_readme() -> None:
    """Write the gallery's page."""
    (GALLERY / "README.md").write_text(readme(), encoding="utf-8")


def readme() -> str:
    """The text of the gallery's page."""
    sections = [README]
    for entry in ENTRIES:
        name = entry.scenario
        sections.append(
            f"## `{name}`: {entry.blue} v {entry.red}\n\n![{name}]({name}.webp)\n\n{caption(story(entry.read()))}\n"
            f"Result: {result(entry.read())}.\n\n"
            f"```\nechelon replay docs/gallery/{name}.replay --html .\n```\n"
        )
    return "\n".join(sections)


class Studio:
    """A page with a replay, in a browser that takes pictures of it."""

    def __init__(self, browser: Any, replay: Replay, size: tuple[int, int]) -> None:
        self.size = size
        # Twice as many pixels are drawn as are kept, because the page does not smooth edges on a machine without a GPU.
        context = browser.new_context(
            viewport={"width": size[0], "height": size[1]}, device_scale_factor=2, bypass_csp=True, color_scheme="dark"
        )
        self.page = context.new_page()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "battle.html")
            write_page(path, replay)
            self.page.goto(path.as_uri())
            self.page.wait_for_function("document.body.dataset.verified || document.body.dataset.failed", timeout=0)
        if self.page.evaluate("document.body.dataset.verified") != "equal":
            raise SystemExit(f"{' v '.join(replay.players)}: the page does not show the recorded battle")
        self.page.add_style_tag(content=STYLE)
        # From now on the page draws only what `take` asks for, with all its pixels.
        self.page.evaluate("requestAnimationFrame = () => 0, echelon.setPlaying(false), echelon.painter.scale = 2")

    def take(self, time: float, camera: Camera) -> Image.Image:
        """A picture of the battle at a time, in decisions."""
        self.page.evaluate(
            "([time, camera]) => { Object.assign(echelon.camera, camera); echelon.goTo(time);"
            " echelon.draw(time * echelon.world.battle.seconds) }",
            [time, camera._asdict()],
        )
        with Image.open(io.BytesIO(self.page.screenshot())) as picture:
            return picture.convert("RGB").resize(self.size, Image.Resampling.LANCZOS)


def draw_pictures() -> None:
    """Draw a picture of every battle, and the moving one."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=chromium, args=list(CHROMIUM_OPTIONS))
        for entry in ENTRIES:
            replay = entry.read()
            told, studio = story(replay), Studio(browser, replay, SIZE)
            studio.take(told.time, told.camera).save(GALLERY / f"{entry.scenario}.webp", quality=80, method=6)
            studio.page.context.close()
        replay = read_replay(GALLERY / f"{MOVING_SCENARIO}.replay")
        studio, step = Studio(browser, replay, MOVING_SIZE), FRAME_SECONDS / replay.config.decision_seconds
        told, frames = story(replay), []
        start = max(0.0, min(told.time, replay.decisions) - MOVING_FRAMES * step / 2)
        for i in range(MOVING_FRAMES):
            camera = told.camera._replace(azimuth=AZIMUTH + (i - MOVING_FRAMES / 2) * MOVING_TURN)
            frames.append(studio.take(min(start + i * step, replay.decisions), camera))
        frames[0].save(
            GALLERY / f"{MOVING_SCENARIO}-moving.webp", save_all=True, append_images=frames[1:], loop=0,
            duration=round(1000 * FRAME_SECONDS), quality=50, method=6,
        )  # fmt: skip


def write_pages(folder: Path) -> None:
    """Write a page of every battle, and one that shows all of them."""
    folder.mkdir(parents=True, exist_ok=True)
    items = []
    for entry in ENTRIES:
        name, replay = entry.scenario, entry.read()
        write_page(folder / f"{name}.html", replay)
        shutil.copyfile(GALLERY / f"{name}.webp", folder / f"{name}.webp")
        title, losses, end = map(
            html.escape, (f"{name}: {' v '.join(replay.players)}", caption(story(replay)), result(replay))
        )
        items.append(
            f'<a href="{name}.html"><img src="{name}.webp" width="{SIZE[0]}" height="{SIZE[1]}" alt="{name}">'
            f"<h2>{title}</h2><p>{losses}</p><p><small>{end}</small></p></a>\n"
        )
    (folder / "index.html").write_text(INDEX + "".join(items) + "</main>\n", encoding="utf-8")


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = {"record": record, "pictures": draw_pictures, "readme": write_readme}
    parser.add_argument("command", choices=[*commands, "pages"])
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "build" / "gallery", help="of the web pages")
    args = parser.parse_args()
    if args.command == "pages":
        write_pages(args.folder)
    else:
        commands[args.command]()


if __name__ == "__main__":
    main()
