import os
import signal

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # render_mode "human" opens no real window in tests
os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs, and their children, ignore it
