"""Pages in a real browser: Debian's Chromium, driven by Playwright."""

import shutil
import time
from importlib.util import find_spec

import pytest

CHROMIUM = shutil.which("chromium")
marks = [
    pytest.mark.long,
    pytest.mark.skipif(find_spec("playwright") is None, reason="Playwright is not installed"),
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed: apt-get install chromium"),
]
SECONDS = 120


class Page:
    """An open page, and what its console has said."""

    def __init__(self, browser, address, size=(1280, 720)):
        context = browser.new_context(viewport={"width": size[0], "height": size[1]})
        self.page, self.said = context.new_page(), []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.goto(address)
        state = "document.body.dataset"
        self.wait(f"{state}.failed || {state}.verified !== undefined || {state}.ready")

    def __call__(self, expression):
        return self.page.evaluate(expression)

    def wait(self, expression):
        deadline = time.monotonic() + SECONDS
        while not self(f"Boolean({expression})"):  # `wait_for_function` would need a page without its security policy
            if time.monotonic() > deadline:
                pytest.fail(f"{expression} has not come true in {SECONDS} s")
            time.sleep(0.02)

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)

    def text(self, element):
        return self(f"document.getElementById('{element}').textContent")

    def title(self, element):
        return self(f"document.getElementById('{element}').title")

    def hidden(self, element):
        return self(f"document.getElementById('{element}').hidden")

    @property
    def verified(self):
        return self("document.body.dataset.verified")

    @property
    def decision(self):
        return self("echelon.after.decision")
