#!/bin/sh
# Kernels that wait for a card, in one call of about 75 s: right, with the same bits in any fleet, and compiled, side by
# side; then timed alone, in turns with the present ones; tables last. Everything goes to $OUT.
export PYTHONPATH=src PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1 TRITON_CACHE_DIR=${TRITON_CACHE_DIR:-/tmp/kernels}
logs=${OUT:-.}
begin=$(date +%s)
timeout 60 python3 tests/models/kernels/copies_beside_float64.py cuda 1 7 256 --waiting > "$logs/float64.log" 2>&1 &
timeout 60 python3 benchmarks/next.py loss --rounds 0 > "$logs/warm-loss.log" 2>&1 &
UNWEAVE_TRY=loss timeout 50 python3 -m pytest -c /dev/null --rootdir=. --noconftest -p no:cacheprovider -q \
  tests/training/test_fleet_gpu.py -k standard > "$logs/bits.log" 2>&1 &
for way in 4 8 narrow tight; do
  timeout 60 python3 benchmarks/next.py small --way $way > "$logs/small-$way.log" 2>&1 &
done
wait
echo "checked after $(($(date +%s) - begin)) s"
timeout 30 python3 benchmarks/next.py loss > "$logs/loss.log" 2>&1
echo "loss timed after $(($(date +%s) - begin)) s"
timeout 30 python3 benchmarks/next.py times > "$logs/times.log" 2>&1
tail -n 1 "$logs/float64.log"
tail -q -n 1 "$logs/bits.log" "$logs"/small-*.log
cat "$logs/loss.log" "$logs/times.log"
echo "all in $(($(date +%s) - begin)) s"
