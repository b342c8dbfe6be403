#!/usr/bin/env bash
# Runs every test that has a GPU form on this machine's GPU: gpu_check.sh sample|full
#
# Builds from the sources that are here, without installing anything; with IRIDIUM_BUILD set, uses the
# binaries of that build folder instead. Logs go to GPU_CHECK_LOGS (default: gpu-check in the build folder).
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/counting.sh

extent=${1:-sample}
case "$extent" in
  sample | full) ;;
  *)
    echo "usage: gpu_check.sh sample|full" >&2
    exit 2
    ;;
esac

if [[ -z ${IRIDIUM_BUILD:-} ]]; then
  make SETUP=true PRESET=cuda build-all
fi
build=${IRIDIUM_BUILD:-build}
logs=${GPU_CHECK_LOGS:-$build/gpu-check}
mkdir -p "$logs"

if ! "$build/iridium" info --format json |
  python3 -c 'import json, sys
sys.exit(not any(b["name"] == "cuda" and b["available"] for b in json.load(sys.stdin)["backends"]))'; then
  "$build/iridium" info
  echo "gpu-check: no usable GPU here"
  add_counts "0 1"
  finish
fi
"$build/iridium" info | tee "$logs/info.txt"

# As in all tests: hangs end early.
export IRIDIUM_TIMEOUT=30 IRIDIUM_CONSTRUCTION_TIMEOUT=30

# A private MPS daemon, as `iridium run` starts one: the test binaries start their ranks themselves.
mps_directory=
start_mps() {
  mps_directory=$(mktemp -d)
  export CUDA_MPS_PIPE_DIRECTORY=$mps_directory CUDA_MPS_LOG_DIRECTORY=$mps_directory
  nvidia-cuda-mps-control -d
}
stop_mps() {
  if [[ -n $mps_directory ]]; then
    echo quit | timeout 20 nvidia-cuda-mps-control > /dev/null 2>&1 || true
    unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
    rm -rf "$mps_directory"
    mps_directory=
  fi
}
trap stop_mps EXIT

# part name command...: adds the command as one test.
part() {
  local name=$1
  shift
  if "$@" > "$logs/$name.log" 2>&1; then
    add_counts "1 0"
    echo "ok      $name"
  else
    add_counts "0 1"
    echo "FAILED  $name: $logs/$name.log"
    tail -n 20 "$logs/$name.log"
  fi
}

# suite name binary filter: adds every case of a GoogleTest binary.
suite() {
  local name=$1 binary=$2 filter=$3 start=$SECONDS counts
  local results=$logs/$name.xml
  rm -f "$results"
  timeout 400 "$binary" --gtest_filter="$filter" --gtest_output="xml:$results" \
    > "$logs/$name.log" 2>&1 || true
  counts=$(python3 tools/junit_counts.py "$results" 2> /dev/null) || counts="0 1 0"
  [[ $counts != "0 0 0" ]] || counts="0 1 0"
  add_counts "$counts"
  echo "$name: $counts (passed failed skipped), $((SECONDS - start)) s"
  grep -A 12 -E '^\[  FAILED  \]|: Failure$' "$logs/$name.log" | head -n 60 || true
}

ranks_test=$build/tests/runtime/ranks_test
cuda_test=$build/tests/backend/cuda/cuda_test
device_test=$build/tests/device/device_test
# Threads as ranks are the host backend's; these cases are about the host's own limits and memory.
not_on_gpu='*threads*:Spawn.*:ContextOptionsTest.*:Lifetime.*:IsSymmetric.*:ControlPlane*:Rendezvous*:Privacy*'

start_mps
suite cuda "$cuda_test" '*'
IRIDIUM_BACKEND=cuda suite tiles "$build/tests/device/tile_test" '*'
IRIDIUM_BACKEND=cuda suite kernels "$device_test" '*-*threads*:HostLanes*:Launch.*'
IRIDIUM_BACKEND=cuda suite ranks_device "$ranks_test" "*-$not_on_gpu"
if [[ $extent == full ]]; then
  host_cases="*-$not_on_gpu"
else
  host_cases="*/ContextTest.*:*/AllocationTest.*-$not_on_gpu"
fi
IRIDIUM_BACKEND=cuda IRIDIUM_PLACEMENT=host suite ranks_host "$ranks_test" "$host_cases"
stop_mps

start_mps
IRIDIUM_BACKEND=cuda suite collectives "$build/tests/collectives/collectives_test" '*-*threads*'
stop_mps

probe_test=$build/tests/probe/probe_test
start_mps
IRIDIUM_BACKEND=cuda suite probe "$probe_test" '*-*threads*'
stop_mps

suite mps_daemon "$build/tests/cli/cli_test" 'Mps*'
# Each with the daemon that `iridium run` starts and stops itself.
for ranks in 1 2 4 8; do
  part "example_${ranks}_ranks" "$build/iridium" run -n "$ranks" --backend cuda -- \
    "$build/examples/01_ranks_and_arrays"
done
for example in "$build"/examples/0[2-9]_* "$build"/examples/10_*; do
  [[ -x $example && -f $example ]] || continue
  part "example_${example##*/}" "$build/iridium" run -n 4 --backend cuda -- "$example"
done
for ranks in 2 4 8; do
  part "probe_${ranks}_ranks" "$build/iridium" probe -n "$ranks" --backend cuda
done
# Two jobs in a row, in a process that has asked the driver for its GPUs before.
part tune timeout -k 10 100 "$build/iridium" tune all_gather -n 2 --backend cuda --bytes 64K --samples 7 --sample-time 1 --out "$logs/tuning.txt"
# Dead ones that nobody reaps do not count.
no_daemon_left() { ! ps -eo stat=,pid=,args= | grep -v '^Z' | grep '[n]vidia-cuda-mps'; }
part no_daemon_left no_daemon_left

generated_code() {
  local binary
  for binary in iridium bench/remote tests/device/device_test; do cuobjdump -sass "$build/$binary"; done > "$logs/kernels.sass"
  tools/check_sass.py "$logs/kernels.sass"
}
if command -v cuobjdump > /dev/null; then
  part generated_code generated_code
else
  echo "skipped generated_code: no cuobjdump"
  add_counts "0 0 1"
fi

if command -v compute-sanitizer > /dev/null; then
  part compute_sanitizer compute-sanitizer --tool memcheck --error-exitcode 9 "$cuda_test" \
    --gtest_filter='CudaStreamTest.Captures*:CudaStreamTest.AGraph*:CudaContextTest.Kernels*'
else
  echo "skipped compute_sanitizer: not installed"
  add_counts "0 0 1"
fi
finish
