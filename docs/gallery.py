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
        "battle", "champion", "expert", 3, 59.6, Camera(31, 67, 29, 1.0),
        "The first clash in the zone: red has just lost both lights, and a blue medium has overheated and shut down. "
        "The last blue heavy destroys the last red mech, a scout, with 5 of its 200 hit points left.",
    ),
    Entry(
        "company-city", "expert", "expert", 1, 169.6, Camera(92, 78, 44, 0.0),
        "Forty experts fight between towers and canals until one blue mech is left; in front, a red scout is "
        "destroyed behind its own lines.",
    ),
    Entry(
        "skirmish-jungle", "champion", "expert", 13, 321.6, Camera(41, 48, 16, 1.0),
        "The last two heavies leave the zone empty for twenty seconds, then meet beside it. Blue's shuts down twice, "
        "and wins with 29 hit points left.",
    ),
    Entry(
        "company", "champion", "expert", 3, 105.6, Camera(29, 69, 44, -0.5, 0.6),
        "Red has more of the zone, in which both teams stand until the end. Blue overtakes it ten seconds before the "
        "time limit, and wins by one point.",
    ),
    Entry(
        "battle-industry", "champion", "champions/skirmish", 6, 116.6, Camera(41, 42, 27, 1.0),
        "Two champions overheat alike: three blue mechs and a red medium are shut down at once. Blue's last heavy, "
        "behind in the score, destroys red's.",
    ),
    Entry(
        "octet", "champion", "expert", 13, 252.6, Camera(63, 37, 18, 1.0),
        "The champion leads by 36 to 11 points, but its last medium has overheated and shut down in front of red's "
        "last heavy. The heavy destroys it.",
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
        "skirmish", "champion", "expert", 11, 215.6, Camera(56, 51, 19, 2.4),
        "Three blue mechs hold the zone against five, and destroy all of them within four seconds. Here both heavies "
        "fall in the same decision.",
    ),
    Entry(
        "skirmish-open", "expert", "champion", 6, 330.6, Camera(40, 31, 24, 1.0),
        "Blue's last heavy, with less than 40 of its 200 hit points, holds the zone and has just taken the lead. The "
        "champion's last medium, unhurt, stands 20 m away and fires 111 shells in the battle without a hit.",
    ),
    Entry(
        "skirmish-unseen", "champion", "expert", 28, 224.6, Camera(58, 39, 17, 1.0),
        "A blue heavy and a light lose the zone to a heavy and a medium at 39 of the 45 points that win. The red "
        "heavy is left alone, with 3 of its 200 hit points.",
    ),
    Entry(
        "skirmish-seen", "champion", "expert", 5, 61.6, Camera(53, 52, 22, -0.5),
        "Red leads by seven points and holds the zone, while blue comes from two sides. Blue takes the lead in the "
        "last decision, in which it destroys the last red mech.",
    ),
    Entry(
        "trio", "champion", "expert", 4, 236.6, Camera(58, 56, 16, -0.5),
        "A red heavy holds the zone, but has lost its legs and fallen. Blue's last heavy destroys it, and then the "
        "medium behind it.",
    ),
    Entry(
        "pair-city", "expert", "expert", 1, 190.6, Camera(41.5, 48.5, 18, -2.1),
        "The blue pair destroys a red light from two sides, and loses its own a moment later; the two mediums fight "
        "on for a minute.",
    ),
    Entry(
        "duel", "champion", "expert", 20, 226.6, Camera(31, 68.5, 13, -0.5, 0.45),
        "The champion has hit the expert once, and the expert has kept away from it for 40 seconds. When the zone is "
        "ten points from lost, it comes back and is destroyed.",
    ),
    Entry(
        "duel-cover", "expert", "champion", 29, 179.6, Camera(21, 44, 13, -0.5, 0.45),
        "The champion has 26 of the 30 points that win. Both lose their legs in the last clash, and the expert is left "
        "with 14 of its 150 hit points.",
    ),
    Entry(
        "duel-open", "champion", "expert", 24, 91.3, Camera(35, 26.5, 15, -0.5),
        "A duel on open ground, where smoke is banned: the champion fires until it shuts down, here for the third time "
        "of six. It hits with 14 of 85 shots, the expert with 21 of 39.",
    ),
)  # fmt: skip

SIZE, MOVING_SIZE = (960, 540), (640, 360)  # pixels
MOVING_SCENARIO, MOVING_START, MOVING_FRAMES = "battle", 50.0, 80
FRAME_SECONDS = 0.1
MOVING_CAMERA, MOVING_TURN = Camera(31, 67, 30, 1.3), -0.008  # rad per frame

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
