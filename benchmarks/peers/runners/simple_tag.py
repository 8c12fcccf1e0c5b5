"""MPE2's simple_tag, 10 v 10: circles that push each other about in a plane."""

from turns import floats_of, one_core, parallel_play, serve

one_core()
from mpe2 import simple_tag_v3  # noqa: E402

env = simple_tag_v3.parallel_env(num_good=10, num_adversaries=10, max_cycles=100)
serve(parallel_play(env, actions=5), floats_of(env))
