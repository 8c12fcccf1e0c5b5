"""Pages that show a run while it trains."""

import threading

from cli.test_watch import add_checkpoint
from echelon_env import make_config
from echelon_env.cli import play_server
from echelon_env.cli.watch_server import LiveBattles, WatchServer
from echelon_env.evaluate import baseline
from replays.pages import SECONDS, Page, marks

pytestmark = marks


def test_a_page_goes_on_with_the_next_checkpoint(browser, tmp_path, monkeypatch):
    monkeypatch.setattr(play_server, "GRACE", 1.0)
    monkeypatch.setattr(play_server, "BEAT", 0.1)
    add_checkpoint(tmp_path / "mine", 1_000)
    battles = LiveBattles(str(tmp_path / "mine"), baseline("novice"), make_config("duel"), 0)
    with WatchServer(battles) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        page = Page(browser, server.url)
        assert page.verified == "equal" and page("echelon.world.live") == 1
        add_checkpoint(tmp_path / "mine", 2_000)
        with page.page.expect_event("load", timeout=1000 * SECONDS):
            page.press("End")
        page.wait("document.body.dataset.verified === 'equal'")
        assert page("echelon.world.live") > 1
        page.wait("echelon.playing && echelon.time > 1")  # from its start
        assert page("document.querySelector('#roster-blue h2').textContent") == "mine at 2,000 decisions"
        assert page.said == []
        page.page.context.close()
        thread.join(30)
        assert not thread.is_alive()
