"""The documentation site builds without warnings, its links lead somewhere, and nothing is missing or there twice."""

import importlib
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from benchmarks.baselines import ladder, results
from docs.site import check, environments, staging

import echelon_env
from echelon_env.cli import main
from echelon_env.config import plugins
from project.test_docs import GENERATE, ROOT

for needed in ("sphinx", "furo", "myst_nb"):
    pytest.importorskip(needed)


def build(site):
    """Build the site without running notebooks, which other tests run."""
    command = [sys.executable, "-m", "docs.site", "--notebooks", "none", str(site)]
    result = subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    return site


def described(site):
    """How often each name with dots has an entry in the reference."""
    pages = [path.read_text() for path in (site / "reference").glob("*.html")]
    return Counter(name for page in pages for name in re.findall(r'<dt class="sig[^"]*" id="([\w.]+)"', page))


def modules_of_names():
    """All names with dots of each public object: the key is its name in the modules and its identity."""
    names = {}
    for module in map(importlib.import_module, GENERATE.PUBLIC_MODULES):
        for public in module.__all__:
            value = getattr(module, public)
            if not hasattr(value, "__path__"):  # a package has a page of its own
                names.setdefault((public, id(value)), []).append(f"{module.__name__}.{public}")
    return names.values()


def values(config, prefix=""):
    """The keys with dots of a configuration, as plain data, and their values."""
    for name, value in config.items():
        yield from values(value, f"{prefix}{name}.") if isinstance(value, dict) else [(f"{prefix}{name}", value)]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder that `ECHELON_SITE` names, where the site has been built before, or a new one."""
    return Path(os.environ.get("ECHELON_SITE") or build(tmp_path_factory.mktemp("site") / "html")).resolve()


@pytest.mark.long
def test_the_site_is_complete(site):
    entries = described(site)
    wrong = {names[0]: found for names in modules_of_names() if (found := sum(entries[name] for name in names)) != 1}
    assert wrong == {}, "names and how often the reference has them"
    for module in GENERATE.MODULES_OF_OTHERS:
        assert all(entries[f"{module}.{name}"] == 1 for name in GENERATE.classes_of(module))

    settings = (site / "reference" / "settings.html").read_text()
    rows = Counter(re.findall(r'<tr[^>]*><td[^>]*><p><code[^>]*><span class="pre">([\w.]+)</span></code>', settings))
    fields = {key for key, _ in values(echelon_env.BattleConfig().to_dict()) if not key.startswith("catalog.")}
    assert {key: rows[key] for key in fields if rows[key] != 1} == {}
    assert rows["catalog.weapons.damage"] == rows["ppo.n_steps"] == rows["network.width"] == 1
    empty = [row for row in re.findall(r"<tr.*?</tr>", settings, re.DOTALL) if re.search(r"<p></p></td>\s*</tr>", row)]
    assert empty == [], "settings without a meaning"

    for name in echelon_env.scenario_names():
        text = (site / "environments" / f"{name}.html").read_text()
        ident = f"echelon/{name.title().replace('-', '')}-v1"
        assert f'<span class="pre">{ident}</span>' in text and f"maps-{name}.webp" in text
        assert f"battles/{name}.html" in text and (site / "battles" / f"{name}.html").exists()
    for name in ("1_first_steps", "2_train_a_policy", "3_evaluate_and_watch", "4_self_play_league"):
        assert (site / "tutorials" / f"{name}.html").exists()


def test_links_of_pages_become_links_of_the_site():
    page = "docs/guide/train.md"
    assert staging.link("../reference/rules.md#ablations", page) == "../reference/rules.md#ablations"
    assert staging.link("README.md", page) == "index.md"
    assert staging.link("../../CHANGELOG.md", page) == "../changelog.md"
    assert staging.link("../gallery/README.md", page) == "../environments/index.md"
    assert staging.link("../../examples/1_first_steps.ipynb", page) == "../tutorials/1_first_steps.ipynb"
    assert staging.link("../docs/guide/train.md", "examples/2_train_a_policy.ipynb") == "../guide/train.md"
    assert staging.link("../gallery/duel.replay", page) == "site:../battles/duel.html"
    assert staging.link("https://example.org/a.md", page) == "https://example.org/a.md"
    assert staging.link("../../examples/self_play.py", page).endswith("/blob/main/examples/self_play.py")
    assert staging.link("../../examples", page).endswith("/tree/main/examples")
    with pytest.raises(SystemExit, match=r"docs/guide/train.md: the link nowhere.md leads nowhere"):
        staging.link("nowhere.md", page)
    text = "[a](../../LICENSE) `b[0](../../LICENSE)`\n```\nc[0](../../LICENSE)\n```\n"
    assert staging.relinked(text, page) == text.replace("../../LICENSE", staging.link("../../LICENSE", page), 1)


def test_check_finds_what_is_wrong(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "good.html").write_text(
        '<h1 id="top">A</h1><a href="sub/other.html#b">b</a><a href="https://x.org">x</a>'
    )
    (tmp_path / "sub" / "other.html").write_text('<p id="b"><a href="../good.html#top">a</a><img src="data:,"></p>')
    assert check.check(tmp_path) == []
    (tmp_path / "bad.html").write_text(
        '<a href="none.html">a</a><a href="good.html#none">b</a><script src="https://x.org/a.js"></script>'
        '<a href="../outside.html">c</a><link rel="stylesheet" href="//x.org/a.css">'
    )
    assert check.check(tmp_path) == [
        "bad.html: none.html: no such file",
        "bad.html: good.html#none: no such anchor",
        "bad.html: loads https://x.org/a.js from elsewhere",
        "bad.html: ../outside.html: no such file",
        "bad.html: loads //x.org/a.css from elsewhere",
    ]


@pytest.mark.long
@pytest.mark.parametrize("name", ["duel", "hunt"])
def test_page_of_a_scenario_says_what_its_configuration_says(name, monkeypatch):
    scenario = echelon_env.scenarios()[name]
    rows, ladders = results.read(results.FILE), results.read(ladder.FILE)
    page = environments.page(scenario, environments.results_of(name, rows, ladders))
    assert re.search(r"^\| `champion` \|.* \d+\.\d \[", page.split("## Results")[1], re.MULTILINE)
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    scope = {}
    exec(code, scope)
    assert scope["env"].config == scenario.config
    for line in re.findall(r"^echelon (.*)", page, re.MULTILINE):
        monkeypatch.setattr(plugins.declared(plugins.COMMANDS)["evaluate"].load(), "run", lambda args: 0)
        assert main(line.split()) == 0
    rows = re.findall(r"^\| `([\w.]+)` \| (.*) \|$", page.split("## Maps")[0], re.MULTILINE)
    own, default = (dict(values(config.to_dict())) for config in (scenario.config, echelon_env.make_config()))
    assert [key for key, _ in rows] == [key for key in own if own[key] != default[key]]


@pytest.mark.long
def test_the_site_in_a_browser(site):
    """Pages fit a telephone, the search finds words, a replay plays, and nothing is loaded from elsewhere."""
    playwright = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("Chromium is not installed")
    options = ["--no-sandbox", "--enable-unsafe-swiftshader", "--use-gl=angle", "--use-angle=swiftshader"]
    with playwright.sync_playwright() as api:
        browser = api.chromium.launch(executable_path=chromium, args=options)
        page = browser.new_page(viewport={"width": 390, "height": 844})
        requests = []
        page.on("request", lambda request: requests.append(request.url))
        wide = []
        for path in sorted(site.rglob("*.html")):
            if path.parent.name != "battles":
                page.goto(path.as_uri(), wait_until="domcontentloaded")
                if page.evaluate("document.documentElement.scrollWidth") > 390:
                    wide.append(path.relative_to(site).as_posix())
        assert wide == []

        page.goto((site / "search.html").as_uri() + "?q=heat")
        page.wait_for_selector("ul.search a[href*='rules.html']")
        page.goto((site / "watch.html").as_uri())
        replay = page.frame_locator("iframe.battle").locator("body[data-verified]")
        replay.wait_for(timeout=120_000)
        assert replay.get_attribute("data-verified") == "equal"
        assert all(url.startswith(("file:", "data:", "blob:")) for url in requests)
        browser.close()
