#!/bin/sh
# Every check and timing of the fleet on a GPU in one call: compilations and checks side by side, then timings alone.
export PYTHONPATH=src PYTHONUNBUFFERED=1
logs=${OUT:-.}
begin=$(date +%s)
for precision in bf16 tf32 fp32; do
  (unset OUT; timeout 250 python3 benchmarks/kernels.py --skip bits profile steps --precisions $precision > "$logs/errors-$precision.log" 2>&1) &
done
(unset OUT; timeout 250 python3 benchmarks/kernels.py --skip errors profile steps > "$logs/bits.log" 2>&1) &
timeout 250 python3 -m pytest -c /dev/null --rootdir=. --noconftest -p no:cacheprovider -q tests/training/test_fleet_gpu.py tests/models/kernels/test_copies.py > "$logs/tests.log" 2>&1 &
wait
grep -h "checks\|too far\|same bits\|passed\|failed\|Error" "$logs"/errors-*.log "$logs/bits.log" "$logs/tests.log"
echo "checked in $(($(date +%s) - begin)) s"
python3 benchmarks/fleet.py 2>&1
echo "timed after $(($(date +%s) - begin)) s"
(unset OUT; python3 benchmarks/kernels.py --skip errors bits steps --models 256 > "$logs/profile.log" 2>&1)
(unset OUT; python3 benchmarks/kernels.py --skip errors bits steps --models 128 --objective factor_vae > "$logs/profile-factor.log" 2>&1)
head -22 "$logs/profile.log" "$logs/profile-factor.log" | cut -c1-100
echo "all in $(($(date +%s) - begin)) s"
