#!/bin/bash
# duel.sh WORKTREE NAME SEED imitation ppo
cd $1; export PYTHONPATH=$PWD/src; E="$PWD/.venv/bin/python -m echelon_env"; cd /work/t57
$E imitate duel --seed $3 --steps 1000000000 --max-cpu-minutes $4 --eval-every 0 --out $2-i > $2-i.log 2>&1
$E train duel --init $2-i --opponent '{self = 5, expert = 3, veteran = 1, competent = 1}' --steps 1000000000 --max-cpu-minutes $5 --seed $3 --eval-every 0 --ppo.learning-rate linear:4e-4:4e-5 --out $2 > $2.log 2>&1
$E card policy:$2 --scenario duel --battles 200 --without laser autocannon smoke memory "map around it" --out $2.card > $2.card.txt 2>&1
