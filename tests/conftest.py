import os

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # render_mode "human" opens no real window in tests
os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
