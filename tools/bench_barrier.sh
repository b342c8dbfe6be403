#!/usr/bin/env bash
# Compares our barrier kernel with that of torch's symmetric memory: bench_barrier.sh RANKS OUTPUT_FOLDER
#
# Both run as RANKS processes on GPU 0 under one MPS daemon and measure in turns, five rounds each. Writes
# OUTPUT_FOLDER/barrier_RANKS.jsonl and prints the ratio of the medians. Uses the binaries in IRIDIUM_BUILD
# (default build), and PYTHON (default python3), which has torch.
set -euo pipefail

if [[ $# -ne 2 || ! $1 =~ ^[1-9][0-9]*$ ]]; then
  echo "usage: bench_barrier.sh RANKS OUTPUT_FOLDER" >&2
  exit 2
fi
ranks=$1
mkdir -p "$2"
output=$(cd "$2" && pwd)/barrier_$ranks.jsonl
cd "$(dirname "$0")/.."
build=${IRIDIUM_BUILD:-build}
rounds=5
patience=120

folder=$(mktemp -d)
turns=$folder/turns
mps_directory=$folder/mps
mkdir "$turns" "$mps_directory"
declare -A process=()

# alive pid: zombies do not count.
alive() { [[ -e /proc/$1 && $(ps -o stat= -p "$1" 2> /dev/null) != Z* ]]; }

# wait_until seconds command...: false when the command has not succeeded by then.
wait_until() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < deadline)) || return 1
    sleep 0.05
  done
}

is_gone() { ! alive "$1"; }

stop_process() {
  local group=$1
  if alive "$group"; then
    kill -TERM -- "-$group" 2> /dev/null || true
    wait_until 10 is_gone "$group" || true
  fi
  # What a group's leader has left behind.
  kill -KILL -- "-$group" 2> /dev/null || true
}

stop_mps() {
  local control=$mps_directory/nvidia-cuda-mps-control.pid daemon=
  [[ ! -s $control ]] || read -r daemon < "$control" || true
  echo quit | timeout 20 nvidia-cuda-mps-control > /dev/null 2>&1 || true
  if [[ $daemon =~ ^[0-9]+$ ]] && ! wait_until 5 is_gone "$daemon"; then
    kill -KILL "$daemon" 2> /dev/null || true
  fi
}

clean_up() {
  local name
  for name in "${!process[@]}"; do stop_process "${process[$name]}"; done
  stop_mps
  rm -rf "$folder"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

fail() {
  local name
  echo "bench_barrier: $1" >&2
  for name in iridium torch; do
    echo "--- the end of what $name wrote" >&2
    tail -n 30 "$folder/$name.log" >&2
  done
  exit 1
}

# start name command...: in a session of its own, so that all of it can be ended.
start() {
  local name=$1
  shift
  setsid "$@" < /dev/null > "$folder/$name.log" 2>&1 &
  process[$name]=$!
}

# wait_for_turn name round: until that program has done its round.
wait_for_turn() {
  local name=$1 file=$turns/$1.$2.done deadline=$((SECONDS + patience))
  until [[ -e $file ]]; do
    alive "${process[$name]}" || [[ -e $file ]] || fail "$name has ended before the end of round $2"
    ((SECONDS < deadline)) || fail "$name did not end round $2 within $patience s"
    sleep 0.05
  done
}

export CUDA_MPS_PIPE_DIRECTORY=$mps_directory CUDA_MPS_LOG_DIRECTORY=$mps_directory
nvidia-cuda-mps-control -d

start iridium env IRIDIUM_DEVICE=0 "$build/iridium" run -n "$ranks" --backend "${IRIDIUM_BACKEND:-cuda}" \
  --mps off -- "$build/bench/device" --turns "$turns"
start torch "${PYTHON:-python3}" bench/peers/torch_barrier.py --ranks "$ranks" --turns "$turns"

# Round 0 is the setup: nobody measures while the other one starts.
for ((round = 0; round <= rounds; ++round)); do
  for name in iridium torch; do
    touch "$turns/$name.$round"
    wait_for_turn "$name" "$round"
  done
done
for name in iridium torch; do
  wait_until "$patience" is_gone "${process[$name]}" || fail "$name did not end within $patience s"
  wait "${process[$name]}" || fail "$name has failed after its last round"
  unset "process[$name]"
done

python3 - "$rounds" "$output" "$folder/iridium.log" "$folder/torch.log" << 'END'
import json, statistics, sys

rounds, output = int(sys.argv[1]), sys.argv[2]
figures = []
for path in sys.argv[3:]:
    with open(path, errors="replace") as log:
        # `iridium run` writes the rank in front.
        figures += [json.loads(line[line.index("{"):]) for line in log if '{"schema"' in line]
figures.sort(key=lambda figure: figure["round"])
with open(output, "w") as lines:
    lines.writelines(json.dumps(figure) + "\n" for figure in figures)

median = {(figure["what"], figure["round"]): figure["median_us"] for figure in figures}
ratios = []
for turn in range(1, rounds + 1):
    ours, empty, theirs = (
        median[what, turn]
        for what in ("barrier kernel", "empty kernel", "torch symmetric-memory barrier")
    )
    ratios.append(ours / theirs)
    print(f"round {turn}: iridium {ours:.3f} us, torch {theirs:.3f} us, ratio {ours / theirs:.3f}"
          f" (empty kernel {empty:.3f} us)")
print(f"median ratio, iridium / torch: {statistics.median(ratios):.3f}")
print(output)
END
