"""PettingZoo's pursuit: 8 pursuers after 30 evaders on a grid."""

from turns import floats_of, one_core, parallel_play, serve

one_core()
from pettingzoo.sisl import pursuit_v5  # noqa: E402

env = pursuit_v5.parallel_env()
serve(parallel_play(env, actions=5), floats_of(env))
