"""Reports in a browser."""

import json
import shutil

import pytest

from echelon_train.report import write_comparison, write_league_report, write_run_report
from echelon_train.report.markup import Html, element, join, section
from echelon_train.report.page import Page, write
from replays.pages import CHROMIUM, marks
from train.report import totals

pytestmark = marks
HOSTILE = "</script><script>document.title='broken'</script><img src=x onerror=\"document.title='broken'\">"


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    options = ["--no-sandbox", "--enable-unsafe-swiftshader", "--use-gl=angle", "--use-angle=swiftshader"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        yield browser
        browser.close()


class Opened:
    """An open report: what its console said, and what it asked the network for."""

    def __init__(self, browser, path, width=1280, scheme="light"):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.page, self.said, self.asked = context.new_page(), [], []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.failed: dict[str, str] = {}
        self.page.on("requestfailed", lambda request: self.failed.update({request.url: request.failure}))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("body[data-ready]")
        self.path = path

    def __call__(self, expression):
        return self.page.evaluate(expression)

    def check(self):
        assert self.said == []
        assert [url for url in self.asked if not url.startswith(("data:", "about:"))] == [self.path.as_uri()]


@pytest.fixture
def run(finished_run, tmp_path):
    folder = shutil.copytree(finished_run, tmp_path / "run")
    totals.write(folder / "statistics.json", opponents=("novice", HOSTILE))
    document = json.loads((folder / "run.json").read_text())
    document["command"] = [HOSTILE]
    (folder / "run.json").write_text(json.dumps(document))
    line = json.loads((folder / "metrics.jsonl").read_text().splitlines()[-1])
    with (folder / "metrics.jsonl").open("a") as file:
        for share in (0.25, 0.5):
            file.write(json.dumps({**line, f"opponent/{HOSTILE}/win_rate": share}) + "\n")
    return folder


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_a_run(browser, run, tmp_path, width, scheme):
    out = tmp_path / "report.html"
    write_run_report(run, out, replays=1)
    opened = Opened(browser, out, width, scheme)
    assert opened("document.documentElement.scrollWidth") <= width
    ink, paper = opened("[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]")
    dark = [sum(map(int, colour[4:-1].split(","))) for colour in (ink, paper)]
    assert (dark[0] > dark[1]) == (scheme == "dark")
    assert opened("document.title") == "Run run" and opened("document.images.length") == 0
    assert opened("getComputedStyle(document.querySelector('figure svg text')).fill") == ink
    opened.page.locator("iframe").scroll_into_view_if_needed()
    frame = opened.page.frame_locator("iframe")
    frame.locator("body[data-verified]").wait_for(timeout=120_000)
    assert frame.locator("body").get_attribute("data-verified") == "equal"
    opened.check()


def test_values_at_the_pointer(browser, run, tmp_path):
    out = tmp_path / "report.html"
    write_run_report(run, out, replays=0)
    opened = Opened(browser, out)
    figure = opened.page.locator("figure", has_text="win rate in training, by opponent")
    figure.scroll_into_view_if_needed()
    box = figure.locator("svg").bounding_box()
    opened.page.mouse.move(box["x"] + 0.9 * box["width"], box["y"] + 0.5 * box["height"])
    text = figure.locator(".readout").inner_text()
    assert text.startswith("64\n") and HOSTILE[:12] in text and "%" in text
    opened.page.mouse.move(0, 0)
    assert figure.locator(".readout").count() == 0
    opened.check()


@pytest.mark.slow
def test_several_runs_and_a_league(browser, run, league, finished_run, tmp_path):
    write_comparison([run, finished_run], tmp_path / "runs.html", replays=2)
    write_league_report(league.path, tmp_path / "league.html", replays=1)
    for name in ("runs", "league"):
        opened = Opened(browser, tmp_path / f"{name}.html", 390)
        assert opened("document.documentElement.scrollWidth") <= 390
        opened.check()


def test_a_script_that_got_into_the_page_does_not_run(browser, tmp_path):
    out = tmp_path / "report.html"
    bad = element(
        "p", Html("<script>document.title = 'broken'</script><img src=x onerror=\"document.title='broken'\">")
    )
    write(out, Page("safe", join([]), [section("Bad", bad, Html("<img src='https://example.com/x.png'>"))]))
    opened = Opened(browser, out)
    opened.page.wait_for_timeout(500)
    assert opened("document.title") == "safe"
    assert any("Content Security Policy" in line for line in opened.said)
    assert opened.failed == {"https://example.com/x.png": "csp", (tmp_path / "x").as_uri(): "csp"}
