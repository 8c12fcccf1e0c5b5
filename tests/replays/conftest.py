import pytest

from replays.pages import CHROMIUM, Page


@pytest.fixture(scope="module")
def browser():
    """Chromium without a window."""
    from playwright.sync_api import sync_playwright

    options = ["--no-sandbox", "--enable-unsafe-swiftshader", "--use-gl=angle", "--use-angle=swiftshader"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser):
    """Opens pages by their paths, which are closed after the test and must have had no complaints by then.

    An open page goes on playing its battle, and so takes the time of the next tests.
    """
    pages = []

    def open_page(path, size=(1280, 720)):
        pages.append(Page(browser, path.as_uri(), size))
        return pages[-1]

    yield open_page
    for page in pages:
        page.page.context.close()
    assert [page.said for page in pages if page.said] == []
