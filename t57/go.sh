#!/bin/bash
# go.sh WORKTREE NAME SEED [imitation-minutes ppo-minutes]
cd $1; export PYTHONPATH=$PWD/src; E="$PWD/.venv/bin/python -m echelon_env"
I=${4:-5}; P=${5:-12}
cd /work/t57
$E imitate skirmish --seed $3 --steps 1000000000 --max-cpu-minutes $I --eval-every 0 --out $2-i > $2-i.log 2>&1
$E train skirmish --init $2-i --opponent '{self = 5, expert = 3, veteran = 1, competent = 1}' --steps 1000000000 --max-cpu-minutes $P --seed $3 --eval-every 0 --ppo.learning-rate linear:4e-4:4e-5 --out $2 > $2.log 2>&1
$E card policy:$2 --scenario skirmish --battles 100 --without scout light medium heavy "target choice" electronics flamer laser gauss missiles autocannon painter jets smoke "squad table" "map around it" intel memory --out $2.card > $2.card.txt 2>&1
