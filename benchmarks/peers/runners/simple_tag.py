"""MPE2's simple_tag, 10 v 10: circles that push each other about in a plane."""

from turns import one_core, parallel_play, serve

one_core()
from mpe2 import simple_tag_v3  # noqa: E402

serve(parallel_play(simple_tag_v3.parallel_env(num_good=10, num_adversaries=10, max_cycles=100), actions=5))
