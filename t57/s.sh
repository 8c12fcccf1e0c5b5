#!/bin/bash
# h.sh NAME SEED INIT|- imitation ppo rate
cd /work/wt/S; export PYTHONPATH=$PWD/src; E="$PWD/.venv/bin/python -m echelon_env"; cd /work/t57; N=$1; S=$2; INIT=$3; I=$4; P=$5; R=$6
C=""; B=""
if [ $INIT = - ]; then $E imitate skirmish --seed $S --steps 1000000000 --max-cpu-minutes $I --eval-every 0 $B --out $N-i > $N-i.log 2>&1; INIT=$N-i; fi
$E train skirmish --init $INIT --opponent '{self = 5, expert = 3, veteran = 1, competent = 1}' --steps 1000000000 --max-cpu-minutes $P --seed $S --eval-every 0 --ppo.learning-rate linear:$R $B --out $N > $N.log 2>&1
$E card policy:$N --scenario skirmish --battles 100 $C --without scout light medium heavy "target choice" electronics flamer laser gauss missiles autocannon painter jets smoke "squad table" "map around it" intel memory --out $N.card > $N.card.txt 2>&1
