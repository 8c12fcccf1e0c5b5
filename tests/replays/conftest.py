import pytest

from replays.pages import CHROMIUM


@pytest.fixture(scope="module")
def browser():
    """Chromium without a window."""
    from playwright.sync_api import sync_playwright

    options = ["--no-sandbox", "--enable-unsafe-swiftshader", "--use-gl=angle", "--use-angle=swiftshader"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        yield browser
        browser.close()
