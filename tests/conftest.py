import contextlib
import os
import signal

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")  # here and in child processes: the threads of several workers wait for one another
os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # render_mode "human" opens no real window in tests
os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs, and their children, ignore it

with contextlib.suppress(ImportError):  # the sessions of noxfile.py install pytest alone
    from hypothesis import HealthCheck, settings

    slow = [HealthCheck.too_slow]  # time says nothing on a machine that others use
    settings.register_profile("tests", derandomize=True, deadline=None, suppress_health_check=slow)
    settings.register_profile("fuzz", deadline=None, suppress_health_check=slow, print_blob=True)
    settings.load_profile(os.environ.get("ECHELON_HYPOTHESIS_PROFILE", "tests"))


LONGEST = [
    "4_self_play_league",
    "killed_and_continued",
    "test_notebooks",
    "test_examples",
    "test_site.py",
    "tick_oracle",
]
"""Words of the ids of the tests that start first: none of several workers is left with one of them at the end."""


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: next((n for n, word in enumerate(LONGEST) if word in item.nodeid), len(LONGEST)))
    marked = [item for item in items if item.get_closest_marker("cuda")]
    if marked:
        import pytest
        import torch

        if not torch.cuda.is_available():
            for item in marked:
                item.add_marker(pytest.mark.skip(reason="needs a GPU"))
