# Sourced by gpu_check.sh: what each mode sets, and what each part runs. They use its `build`, `logs`, `gpus`, `mode`,
# `extent`, `limit` and `code_is_checked`.
# shellcheck shell=bash disable=SC2154

mps_directory=
most_ranks=64

# One GPU for all ranks, the first of those that are visible.
enter_shared() {
  if [[ $gpus -gt 1 ]]; then
    export CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES:-0}
    CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES%%,*}
  fi
}

enter_apart() {
  most_ranks=$gpus
  export IRIDIUM_TEST_MOST_RANKS=$gpus
  # There is nobody: a daemon of the machine's stays unused.
  export CUDA_MPS_PIPE_DIRECTORY=/nonexistent
}

enter_as_apart() {
  enter_shared
  export IRIDIUM_LINK=apart
}

enter_as_nvlink() {
  enter_shared
  export IRIDIUM_LINK=nvlink
}

enter_no_atomics() {
  enter_shared
  export IRIDIUM_LINK=pcie
}

# A private MPS daemon, as `iridium run` starts one: the test binaries start their ranks themselves.
start_mps() {
  [[ $mode != apart ]] || return 0
  mps_directory=$(mktemp -d)
  export CUDA_MPS_PIPE_DIRECTORY=$mps_directory CUDA_MPS_LOG_DIRECTORY=$mps_directory
  # A daemon numbers the GPUs that it sees anew, so let it see all; names mean the same everywhere.
  case "${CUDA_VISIBLE_DEVICES:-}" in
    GPU-* | MIG-*) nvidia-cuda-mps-control -d ;;
    *) env -u CUDA_VISIBLE_DEVICES nvidia-cuda-mps-control -d ;;
  esac
}
stop_mps() {
  if [[ -n $mps_directory ]]; then
    echo quit | timeout 20 nvidia-cuda-mps-control > /dev/null 2>&1 || true
    unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
    rm -rf "$mps_directory"
    mps_directory=
  fi
}

# limited program...: runs it, and ends it when it has had its time. Functions limit what they run themselves.
limited() {
  local start=$SECONDS status=0
  if [[ $(type -t "$1") == function ]]; then
    "$@"
    return
  fi
  timeout -k 10 "$limit" "$@" || status=$?
  if ((status != 0 && SECONDS - start >= limit)); then
    echo "gpu-check: ended after $limit s; GPU_CHECK_LIMIT=SECONDS gives each program more"
  fi
  return "$status"
}

# check name command...: adds the command as one test.
check() {
  local name=$1 start=$SECONDS
  shift
  if limited "$@" > "$logs/$name.log" 2>&1; then
    add_counts "1 0"
    echo "ok      $name, $((SECONDS - start)) s"
  else
    add_counts "0 1"
    echo "FAILED  $name: $logs/$name.log"
    tail -n 20 "$logs/$name.log"
  fi
}

# skip name why
skip() {
  add_counts "0 0 1"
  echo "skipped $1: $2"
}

# check_ranks name ranks command...: the same, where the mode allows so many ranks.
check_ranks() {
  local name=$1 ranks=$2
  shift 2
  if ((ranks > most_ranks)); then
    skip "$name" "$ranks ranks, and $most_ranks GPUs"
  else
    check "$name" "$@"
  fi
}

# suite name binary filter: adds every case of a GoogleTest binary.
suite() {
  local name=$1 binary=$2 filter=$3 start=$SECONDS counts
  local results=$logs/$name.xml
  rm -f "$results"
  limited "$binary" --gtest_filter="$filter" --gtest_output="xml:$results" > "$logs/$name.log" 2>&1 || true
  counts=$(python3 tools/junit_counts.py "$results" 2> /dev/null) || counts="0 1 0"
  [[ $counts != "0 0 0" ]] || counts="0 1 0"
  add_counts "$counts"
  echo "$name: $counts (passed failed skipped), $((SECONDS - start)) s"
  grep -A 12 -E '^\[  FAILED  \]|: Failure$|^gpu-check: ' "$logs/$name.log" | head -n 60 || true
}

# Threads as ranks are the host backend's; these cases are about the host's own limits and memory.
not_on_gpu='*threads*:Spawn.*:ContextOptionsTest.*:Lifetime.*:IsSymmetric.*:ControlPlane*:Rendezvous*:Privacy*'

part_cuda() {
  start_mps
  suite cuda "$build/tests/backend/cuda/cuda_test" '*'
}

part_tiles() {
  start_mps
  IRIDIUM_BACKEND=cuda suite tiles "$build/tests/device/tile_test" '*'
}

part_kernels() {
  start_mps
  IRIDIUM_BACKEND=cuda suite kernels "$build/tests/device/device_test" '*-*threads*:HostLanes*:Launch.*'
}

part_ranks() {
  local ranks_test=$build/tests/runtime/ranks_test host_cases="*/ContextTest.*:*/AllocationTest.*-$not_on_gpu"
  [[ $extent != full ]] || host_cases="*-$not_on_gpu"
  start_mps
  IRIDIUM_BACKEND=cuda suite ranks_device "$ranks_test" "*-$not_on_gpu"
  IRIDIUM_BACKEND=cuda IRIDIUM_PLACEMENT=host suite ranks_host "$ranks_test" "$host_cases"
}

part_collectives() {
  start_mps
  IRIDIUM_BACKEND=cuda suite collectives "$build/tests/collectives/collectives_test" '*-*threads*'
}

part_matmul() {
  start_mps
  IRIDIUM_BACKEND=cuda suite matmul "$build/tests/matmul/matmul_test" '*'
  IRIDIUM_BACKEND=cuda suite fused "$build/tests/fused/fused_test" '*-*threads*:*UnderRandomSchedules*'
}

part_probe() {
  start_mps
  IRIDIUM_BACKEND=cuda suite probe "$build/tests/probe/probe_test" '*-*threads*'
}

# The daemon is the one that `iridium run` starts.
part_room() {
  local ranks teams
  for ranks in 2 4 8; do
    for teams in 1 2; do
      check_ranks "room_${ranks}_ranks_${teams}_teams" "$ranks" "$build/iridium" run -n "$ranks" --backend cuda -- \
        "$build/tests/backend/cuda/room" --teams "$teams"
    done
  done
}

# Dead ones that nobody reaps do not count.
no_daemon_left() { ! ps -eo stat=,pid=,args= | grep -v '^Z' | grep '[n]vidia-cuda-mps'; }

part_mps() {
  if [[ $mode != shared ]]; then
    skip mps "a matter of mode shared"
    return
  fi
  suite mps_daemon "$build/tests/cli/cli_test" 'Mps*'
  check mps_job "$build/iridium" run -n 2 --backend cuda -- "$build/examples/01_ranks_and_arrays"
  check no_daemon_left no_daemon_left
}

# Each with the daemon that `iridium run` starts and stops itself.
part_examples() {
  local ranks example
  for ranks in 1 2 4 8; do
    check_ranks "example_${ranks}_ranks" "$ranks" "$build/iridium" run -n "$ranks" --backend cuda -- \
      "$build/examples/01_ranks_and_arrays"
  done
  ranks=$((most_ranks < 4 ? most_ranks : 4))
  for example in "$build"/examples/0[2-9]_* "$build"/examples/1[0-9]_*; do
    [[ -x $example && -f $example ]] || continue
    check "example_${example##*/}" "$build/iridium" run -n "$ranks" --backend cuda -- "$example"
  done
}

# by_hand delay [word...]: a job of two ranks that no launcher started, rank 1 so many seconds after rank 0, with the
# words in front of the program.
by_hand() {
  local delay=$1 job=gpu-check-$BASHPID-$RANDOM rank processes=() status=0
  shift
  for rank in 0 1; do
    {
      [[ $rank -eq 0 ]] || sleep "$delay"
      IRIDIUM_BACKEND=cuda IRIDIUM_LOG=warn IRIDIUM_JOB=$job IRIDIUM_SIZE=2 IRIDIUM_RANK=$rank IRIDIUM_LOCAL_RANK=$rank \
        limited "$@" "$build/examples/10_all_reduce"
    } &
    processes+=($!)
  done
  for rank in 0 1; do
    wait "${processes[rank]}" || { status=$? && echo "gpu-check: rank $rank ended with status $status"; }
  done
  return "$status"
}

# Ranks with process numbers of their own, as in containers: both are number 1.
own_numbers() {
  local words
  for words in "unshare --kill-child -p --mount-proc" "unshare --kill-child -Ucp --mount-proc"; do
    # shellcheck disable=SC2086
    $words true 2> /dev/null || continue
    # shellcheck disable=SC2086
    check ranks_with_own_process_numbers by_hand 0 $words
    return
  done
  skip ranks_with_own_process_numbers "unshare is not permitted here"
}

# Whether the job that process $1 runs met, and rank 0 said for whom it waited.
late_rank() {
  local status=0 log=$logs/late_rank_job.log
  wait "$1" || status=$?
  cat "$log"
  if [[ $status -eq 0 ]] && ! grep -q 'has waited 10 s for rank 1' "$log"; then
    echo "gpu-check: rank 0 did not say within 10 s that it waits for rank 1"
    status=1
  fi
  return "$status"
}

part_commands() {
  local ranks late
  # Rank 1 comes while the others below run.
  IRIDIUM_CONSTRUCTION_TIMEOUT=120 by_hand 40 > "$logs/late_rank_job.log" 2>&1 &
  late=$!
  own_numbers
  for ranks in 2 4 8; do
    check_ranks "peers_${ranks}_ranks" "$ranks" "$build/iridium" info --peers -n "$ranks" --backend cuda
    check_ranks "probe_${ranks}_ranks" "$ranks" "$build/iridium" probe -n "$ranks" --backend cuda
  done
  # Two jobs in a row, in a process that has asked the driver for its GPUs before.
  check tune "$build/iridium" tune all_gather -n 2 --backend cuda --bytes 64K --samples 7 \
    --sample-time 1 --out "$logs/tuning.txt"
  [[ $mode == apart ]] || check no_daemon_left_by_commands no_daemon_left
  check rank_40_s_late late_rank "$late"
}

# The library's kernels are in every program; the others have more that store to peers.
generated_code() {
  local binary
  for binary in iridium bench/remote tests/device/device_test; do
    cuobjdump -sass "$build/$binary" || return
  done > "$logs/kernels.sass"
  tools/check_sass.py "$logs/kernels.sass"
}

part_code() {
  [[ $code_is_checked == false ]] || return 0
  if command -v cuobjdump > /dev/null; then
    check generated_code generated_code
  else
    skip generated_code "no cuobjdump"
  fi
}

part_sanitizer() {
  [[ $code_is_checked == false ]] || return 0
  if command -v compute-sanitizer > /dev/null; then
    check compute_sanitizer compute-sanitizer --tool memcheck --error-exitcode 9 "$build/tests/backend/cuda/cuda_test" \
      --gtest_filter='CudaStreamTest.Captures*:CudaStreamTest.AGraph*:CudaContextTest.Kernels*'
  else
    skip compute_sanitizer "not installed"
  fi
}
