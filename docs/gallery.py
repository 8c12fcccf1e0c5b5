"""The gallery: a battle of every scenario as a replay and a picture, in ``docs/gallery``.

``python docs/gallery.py record`` plays the battles. ``pictures`` draws them and a moving picture, with Playwright and
Chromium. ``readme`` writes the gallery's page, and ``pages FOLDER`` a web page of each battle and one of all.
"""

import argparse
import html
import io
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image

from echelon_env.config.scenario import make_config
from echelon_env.engine.state import DRAW, REASONS
from echelon_env.evaluate import BASELINES, Player, baseline, checkpoint_player, evaluation_seed
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
    elevation: float = 0.5  # rad


@dataclass(frozen=True)
class Entry:
    """A battle, and what its picture shows."""

    scenario: str  # and the name of its files
    blue: str  # a baseline, or the folder of another champion
    red: str
    number: int  # of the map, see `evaluation_seed`
    time: float  # of the picture, in decisions
    camera: Camera
    caption: str

    def read(self) -> Replay:
        """Its replay."""
        return read_replay(GALLERY / f"{self.scenario}.replay")


ENTRIES = (
    Entry(
        "battle", "champion", "expert", 11, 86.6, Camera(60.5, 54, 29, 2.1),
        "Seven blue mechs hold the zone against four, but three of their mediums have just overheated and shut down; "
        "at the end a red heavy is the last mech of twenty.",
    ),
    Entry(
        "company-city", "expert", "expert", 1, 169.6, Camera(92, 78, 44, 0.0),
        "Forty experts fight between towers and canals until one blue mech is left; in front, a red scout is "
        "destroyed behind its own lines.",
    ),
    Entry(
        "skirmish-jungle", "champion", "expert", 2, 190.6, Camera(60, 55, 28, -2.1),
        "The policy leads by 34 points while its medium, shut down by heat, is under fire in a clearing; at the end "
        "the last two mechs destroy each other in the same decision.",
    ),
    Entry(
        "company", "champion", "expert", 0, 149.6, Camera(46.5, 58.5, 46, -2.1, 0.6),
        "Blue attacks the zone in one block, and red's scouts jam from the side; the lead changes four times.",
    ),
    Entry(
        "battle-industry", "champion", "champions/skirmish", 3, 61.6, Camera(31, 66, 30, -1.9, 0.6),
        "Two trained policies in the smoke before the zone, where blue's heavy has just destroyed a light of its own "
        "side; the last mech of all is blue's other heavy.",
    ),
    Entry(
        "octet", "champion", "expert", 6, 239.6, Camera(36, 40, 17, -2.1),
        "The champion's last heavy holds the zone and has 40 of the 45 points that win; red's last heavy comes close "
        "and destroys it.",
    ),
    Entry(
        "ambush", "expert", "expert", 0, 67.6, Camera(37, 54.5, 28, 0.0),
        "Five mechs leave their cover against eight lighter ones that hold the zone, and lose their light; their "
        "heavy is left alone, and destroys the last four.",
    ),
    Entry(
        "hunt", "expert", "expert", 15, 195.6, Camera(53, 49, 22, -2.1),
        "A heavy and a light stand in the zone against five hunters; the heavy destroys two of them within two "
        "seconds, overheats, and is lost.",
    ),
    Entry(
        "skirmish", "champion", "expert", 1, 85.6, Camera(56.5, 59, 20, 0.0),
        "A fight at arm's length in the zone: a red medium has lost its legs and fallen, and a blue heavy destroys "
        "it.",
    ),
    Entry(
        "skirmish-open", "expert", "champion", 8, 62.6, Camera(54.5, 25.5, 27, -2.1),
        "A blue medium is knocked down in the zone in front of three red mechs and destroyed; the policy was behind, "
        "and wins with its last mech.",
    ),
    Entry(
        "skirmish-unseen", "champion", "expert", 9, 205.6, Camera(62, 41, 18, 0.6),
        "One red heavy against a heavy and two mediums that overheat in turn: it destroys all three, the last one at "
        "37 of 45 points.",
    ),
    Entry(
        "skirmish-seen", "champion", "expert", 8, 271.6, Camera(66, 40, 20, 0.6),
        "The last two heavies: the champion's is knocked down for the second time and loses, with as many points as "
        "the expert.",
    ),
    Entry(
        "trio", "champion", "expert", 4, 275.6, Camera(55, 54, 14, -2.1),
        "Two heavies destroy each other within one decision, three points before the champion's has won; red is left "
        "with its scout, which has no gun.",
    ),
    Entry(
        "pair-city", "expert", "expert", 1, 190.6, Camera(41.5, 48.5, 18, -2.1),
        "The blue pair destroys a red light from two sides, and loses its own a moment later; the two mediums fight "
        "on for a minute.",
    ),
    Entry(
        "duel", "champion", "expert", 14, 284.6, Camera(68, 31, 15, -2.1),
        "The policy has 40 of the 45 points that win, and its last shells are on their way to an expert with almost "
        "no armour.",
    ),
    Entry(
        "duel-cover", "expert", "champion", 6, 126.6, Camera(24, 25, 15, 0.5),
        "A laser and shells across the street: the policy stands in the zone, and the expert comes to take it.",
    ),
    Entry(
        "duel-open", "champion", "expert", 13, 67.6, Camera(31.5, 18, 14, 2.1),
        "An early exchange of a duel on open ground, where both see each other all the time; the policy wins with "
        "10 of its 150 hit points, behind in the score.",
    ),
)  # fmt: skip

SIZE, MOVING_SIZE = (960, 540), (640, 360)  # pixels
MOVING_SCENARIO, MOVING_START, MOVING_FRAMES = "battle", 57.0, 80
FRAME_SECONDS = 0.1
MOVING_CAMERA, MOVING_TURN = Camera(61.5, 52.5, 30, 2.4), -0.008  # rad per frame

CHROMIUM_OPTIONS = ("--no-sandbox", "--enable-unsafe-swiftshader", "--use-gl=angle", "--use-angle=swiftshader")
STYLE = """footer, #inspector, .roster:has(:nth-child(15)) .mech { display: none }
#picture, #labels { inset: 0; height: 100% }
@media (width < 800px) { .roster { display: none } }"""
README = f"""# Gallery

A battle of every scenario, on maps of the evaluation with seed {SEED}: scripted experts and the shipped
[champions](../champions.md), blue's player first. The command below a picture writes a [page](../replays.md)
that shows the whole battle in a browser; `make gallery` writes all of them into `build/gallery`.

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
            f"## `{name}`: {entry.blue} v {entry.red}\n\n![{name}]({name}.webp)\n\n{entry.caption}\n"
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
            viewport={"width": size[0], "height": size[1]}, device_scale_factor=2, bypass_csp=True
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
            studio = Studio(browser, entry.read(), SIZE)
            studio.take(entry.time, entry.camera).save(GALLERY / f"{entry.scenario}.webp", quality=80, method=6)
            studio.page.context.close()
        replay = read_replay(GALLERY / f"{MOVING_SCENARIO}.replay")
        studio, step = Studio(browser, replay, MOVING_SIZE), FRAME_SECONDS / replay.config.decision_seconds
        frames = []
        for i in range(MOVING_FRAMES):
            camera = MOVING_CAMERA._replace(azimuth=MOVING_CAMERA.azimuth + i * MOVING_TURN)
            frames.append(studio.take(MOVING_START + i * step, camera))
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
        title, caption, end = map(html.escape, (f"{name}: {' v '.join(replay.players)}", entry.caption, result(replay)))
        items.append(
            f'<a href="{name}.html"><img src="{name}.webp" width="{SIZE[0]}" height="{SIZE[1]}" alt="{name}">'
            f"<h2>{title}</h2><p>{caption}</p><p><small>{end}</small></p></a>\n"
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
