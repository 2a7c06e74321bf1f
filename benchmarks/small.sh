#!/bin/sh
# Small conv fleets and a whole training on a GPU in one call of about 90 s: bits and compilations side by side, then
# timings alone, in turns with the sources in $BEFORE (default before/src), then where the time of a training goes.
# ROUNDS=2 times both once more; STEPS=8000 makes the training a whole one; PROFILE=1 adds every kernel of a step.
export PYTHONPATH=src PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1 TRITON_CACHE_DIR=${TRITON_CACHE_DIR:-/tmp/kernels}
logs=${OUT:-.}
before=${BEFORE:-before/src}
begin=$(date +%s)
tests="python3 -m pytest -c /dev/null --rootdir=. --noconftest -p no:cacheprovider -q tests/training/test_fleet_gpu.py"
dense="python3 benchmarks/dense.py --cases conv --sources $before --seconds 0.2"
timeout 60 $tests -k "standard or weighed or finite" > "$logs/bits.log" 2>&1 &
timeout 60 $tests -k "slot_or_size and not dense and not standard" > "$logs/bits-small.log" 2>&1 &
timeout 60 $tests -k "replays or latents_of or company or resumes or portable_path" > "$logs/fleets.log" 2>&1 &
python3 -c "from unweave.data.dsprites import DSprites; DSprites().load()" > "$logs/data.log" 2>&1 &
timeout 60 $dense --ways before --seconds 0 > "$logs/warm-before.log" 2>&1 &
timeout 60 $dense --ways usual --seconds 0 > "$logs/warm.log" 2>&1 &
timeout 60 $dense --ways changed --set first_two.run=16 first_two.PORTIONS=1 last.run=8 --seconds 0 > "$logs/warm-changed.log" 2>&1 &
wait
tail -q -n 2 "$logs/bits.log" "$logs/bits-small.log" "$logs/fleets.log"
grep -h "FAILED\|Error\|without" "$logs"/bits*.log "$logs/fleets.log" "$logs"/warm*.log
echo "checked after $(($(date +%s) - begin)) s"
timeout 60 $dense --ways before usual 2>&1 | tee "$logs/turns.log"
timeout 20 $dense --ways changed --set first_two.FEW=0 aside.MOST=1000000 2>&1 | tee -a "$logs/turns.log"
echo "timed after $(($(date +%s) - begin)) s"
rm -rf /tmp/small-runs
timeout 60 python3 benchmarks/start.py dsprites --seeds 0:128 --steps "${STEPS:-2000}" --plan.device cuda --quiet --folder /tmp/small-runs > "$logs/start.log" 2>&1
grep -h " s until\|Error" "$logs/start.log"
echo "trained after $(($(date +%s) - begin)) s"
test "${ROUNDS:-1}" = 1 || timeout 60 $dense --ways usual before 2>&1 | tee -a "$logs/turns.log"
timeout 20 $dense --ways changed --set first_two.run=16 first_two.PORTIONS=1 last.run=8 2>&1 | tee -a "$logs/turns.log"
test -z "$PROFILE" || for case in conv-1 conv-16 conv-256; do
  timeout 30 python3 benchmarks/dense.py --cases $case --ways usual --profile > "$logs/profile-$case.log" 2>&1
done
echo "all in $(($(date +%s) - begin)) s"
