#!/bin/sh
# Kernels that wait for a card, in one call of about 75 s: right, with the same bits in any fleet, and compiled, side by
# side; then timed alone, in turns with the present ones; tables last. Everything goes to $OUT.
export PYTHONPATH=src PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1 TRITON_CACHE_DIR=${TRITON_CACHE_DIR:-/tmp/kernels}
logs=${OUT:-.}
begin=$(date +%s)
four="small.KNOWN=1 small.WARPS=4"
eight="small.KNOWN=1 small.WARPS=8"
narrow="small.KNOWN=1 small.WARPS=4 small.TILE=32"
tight="small.KNOWN=1 small.WARPS=8 small.TILE=32 small.LIMIT=128"
timeout 60 python3 tests/models/kernels/copies_beside_float64.py cuda 1 7 256 --waiting > "$logs/float64.log" 2>&1 &
timeout 60 python3 benchmarks/next.py loss --rounds 0 > "$logs/warm-loss.log" 2>&1 &
UNWEAVE_TRY=loss timeout 60 python3 -m pytest -c /dev/null --rootdir=. --noconftest -p no:cacheprovider -q \
  tests/training/test_fleet_gpu.py -k standard > "$logs/bits.log" 2>&1 &
number=0
for settings in "$four" "$eight" "$narrow" "$tight"; do
  number=$((number + 1))
  # shellcheck disable=SC2086
  timeout 60 python3 benchmarks/next.py small --set $settings > "$logs/small-$number.log" 2>&1 &
done
wait
echo "checked after $(($(date +%s) - begin)) s"
timeout 30 python3 benchmarks/next.py loss > "$logs/loss.log" 2>&1
echo "loss timed after $(($(date +%s) - begin)) s"
dense="timeout 20 python3 benchmarks/dense.py --cases tanh-epochs --seconds 0.1 --ways"
$dense usual > "$logs/turns.log" 2>&1
for settings in "$four" "$eight" "$narrow" "$tight"; do
  # shellcheck disable=SC2086
  test $(($(date +%s) - begin)) -gt 74 || $dense changed --set $settings 2>&1 | sed "s/changed/$settings:/" >> "$logs/turns.log"
done
tail -n 1 "$logs/float64.log"
tail -q -n 1 "$logs/bits.log" "$logs"/small-?.log
cat "$logs/loss.log" "$logs/turns.log"
echo "all in $(($(date +%s) - begin)) s"
