"""The gallery of replays is complete and current."""

import importlib.util
import re
from pathlib import Path

import pytest
from PIL import Image

import echelon_env
from echelon_env.replays import read_replay

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "gallery"


def load(path: Path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GALLERY = load(ROOT / "docs" / "gallery.py")
NAMES = [entry.scenario for entry in GALLERY.ENTRIES]


def test_every_scenario_has_a_battle():
    assert sorted(NAMES) == sorted(echelon_env.scenario_names())


def test_every_battle_has_its_files():
    files = {f"{name}.{suffix}" for name in NAMES for suffix in ("replay", "webp")}
    assert {path.name for path in FOLDER.iterdir()} == {*files, "battle-moving.webp", "README.md"}


def test_folder_is_small():
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 5_000_000


def test_pictures_have_their_sizes():
    for name in NAMES:
        with Image.open(FOLDER / f"{name}.webp") as picture:
            assert picture.size == GALLERY.SIZE
    with Image.open(FOLDER / "battle-moving.webp") as picture:
        assert picture.size == GALLERY.MOVING_SIZE and picture.n_frames > GALLERY.MOVING_FRAMES / 2


@pytest.mark.parametrize("entry", GALLERY.ENTRIES, ids=NAMES)
def test_replay_is_of_the_present_engine(entry):
    replay = read_replay(FOLDER / f"{entry.scenario}.replay")
    assert replay.players == (entry.blue, entry.red)
    assert replay.config == echelon_env.make_config(entry.scenario), "record it again: python docs/gallery.py record"
    assert replay.first_difference() is None, "record it again: python docs/gallery.py record"
    assert 0 < GALLERY.story(replay).time <= replay.decisions


def test_page_is_current():
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert text == GALLERY.readme(), "run: python docs/gallery.py readme"
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert (FOLDER / target).exists(), target


def test_web_pages(tmp_path, monkeypatch):
    monkeypatch.setattr(GALLERY, "ENTRIES", GALLERY.ENTRIES[-1:])
    GALLERY.write_pages(tmp_path / "new" / "folder")
    index = (tmp_path / "new" / "folder" / "index.html").read_text(encoding="utf-8")
    targets = re.findall(r'(?:href|src)="([^"]+)"', index)
    assert targets == [f"{NAMES[-1]}.html", f"{NAMES[-1]}.webp"]
    assert {path.name for path in (tmp_path / "new" / "folder").iterdir()} == {*targets, "index.html"}
