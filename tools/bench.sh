#!/usr/bin/env bash
# Measures this machine beside its peers and regenerates docs/performance.md: bench.sh [options of iridium bench]
#
# Figures go to bench/results/MACHINE/bench.json. Peers are what is here: torch's symmetric memory on a GPU,
# Open MPI on CPUs. Uses the binaries in IRIDIUM_BUILD (default build), and PYTHON (default python3).
set -euo pipefail
cd "$(dirname "$0")/.."
build=${IRIDIUM_BUILD:-build}
python=${PYTHON:-python3}

has_gpu() {
  "$build/iridium" info --format json | "$python" -c 'import json, sys
sys.exit(not any(b["name"] == "cuda" and b["available"] for b in json.load(sys.stdin)["backends"]))'
}

mkdir -p "$build/bench"
options=(-n 2,4,8)
if has_gpu; then
  options+=(--backend cuda --bytes 4K:64M)
  if "$python" -c 'import torch' 2> /dev/null; then
    options+=(--peer bench/peers/torch)
  else
    echo "bench: torch is not installed, so it is not measured" >&2
  fi
else
  options+=(--backend host --bytes 4K:16M)
  if command -v mpic++ mpirun > /dev/null; then
    mpic++ -std=c++20 -O2 -Wall -Wextra -o "$build/bench/mpi_peer" bench/peers/mpi_peer.cpp
    options+=(--peer bench/peers/openmpi)
  else
    echo "bench: Open MPI is not installed, so it is not measured" >&2
  fi
fi

figures=$(mktemp)
trap 'rm -f "$figures"' EXIT
status=0
"$build/iridium" bench device_barrier signal_all put get put_signal "${options[@]}" --out "$figures" "$@" || status=$?
read -r machine complete < <("$python" -c 'import json, sys
run = json.load(open(sys.argv[1]))
print(run["machine"]["name"], run["complete"])' "$figures") || exit "$status"
if [[ $complete != True ]]; then
  echo "bench: the run was cut short; bench/results/$machine/bench.json stays as it is" >&2
  exit "$status"
fi
mkdir -p "bench/results/$machine"
cp "$figures" "bench/results/$machine/bench.json"
echo "bench/results/$machine/bench.json"
"$python" tools/performance_page.py
exit "$status"
