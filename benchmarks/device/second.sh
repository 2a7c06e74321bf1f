export PYTHONPATH=src PYTHONUNBUFFERED=1
L=$OUT; unset OUT
python3 -c "import pytest, hypothesis, beartype" 2>&1 | tail -1; python3 -c "import rich" 2>&1 | tail -1
t0=$(date +%s)
( timeout 250 python3 benchmarks/kernels.py --skip errors profile steps > /tmp/bits.log 2>&1 ) &
for p in bf16 tf32 fp32; do ( timeout 250 python3 benchmarks/kernels.py --skip bits profile steps --precisions $p > /tmp/err-$p.log 2>&1 ) & done
( timeout 250 python3 -m pytest -c /dev/null --rootdir=. --noconftest -p no:cacheprovider -q tests/train/test_fleet_gpu.py > /tmp/pytest.log 2>&1 ) &
( timeout 250 env ONLY=colour python3 benchmarks/tune.py 16 > /tmp/tune0.log 2>&1 ) &
wait
echo "side by side: $(( $(date +%s) - t0 )) s"
cat /tmp/bits.log /tmp/err-*.log /tmp/pytest.log | tee $L/checks.log | tail -40
ONLY=colour timeout 150 python3 benchmarks/tune.py 128 --skip errors bits --models 256 --channels 3 --cases 2>&1 | tee $L/tune.log | grep -v "^calls\|warn" | cut -c1-150
echo "tuned: $(( $(date +%s) - t0 )) s"
timeout 100 python3 benchmarks/kernels.py --skip errors bits steps --models 128 --objective factor_vae > $L/profilef.log 2>&1; head -30 $L/profilef.log | cut -c1-120
OUT=$L timeout 100 python3 benchmarks/precision.py --seeds 64 --steps 6000 2>&1 | tee $L/precision.log
OUT=$L timeout 140 python3 benchmarks/precision.py --world dsprites --seeds 32 --steps 8000 --beta 4 2>&1 | tee -a $L/precision.log
echo "all: $(( $(date +%s) - t0 )) s"
