"""PettingZoo's pursuit: 8 pursuers after 30 evaders on a grid."""

from turns import one_core, parallel_play, serve

one_core()
from pettingzoo.sisl import pursuit_v5  # noqa: E402

serve(parallel_play(pursuit_v5.parallel_env(), actions=5))
