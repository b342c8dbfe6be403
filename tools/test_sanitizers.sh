#!/usr/bin/env bash
# Builds and runs the tests under the sanitizers: the whole suite with AddressSanitizer and
# UndefinedBehaviorSanitizer, the tests of in-process ranks with ThreadSanitizer.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/counting.sh

# Reports name functions and lines with the help of llvm-symbolizer.
PATH="$(llvm-config-19 --bindir):$PATH"
asan_checks="detect_leaks=1:detect_stack_use_after_return=1:check_initialization_order=1"
export ASAN_OPTIONS="halt_on_error=1:strict_string_checks=1:$asan_checks:${ASAN_OPTIONS:-}"
export UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1:${UBSAN_OPTIONS:-}"
export TSAN_OPTIONS="halt_on_error=1:second_deadlock_stack=1:${TSAN_OPTIONS:-}"

# check preset label [ctest option...]: a build that fails counts as one failure.
check() {
  local preset=$1 title=$2 before_passed=$passed before_failed=$failed
  shift 2
  if cmake --preset "$preset" --log-level=NOTICE -D IRIDIUM_CCACHE="${IRIDIUM_CCACHE:-ON}" &&
    tools/timed.sh "build, $title" cmake --build --preset "$preset" --parallel "$(nproc)"; then
    run_ctest "build-$preset" "tests, $title" "$@"
  else
    add_counts "0 1"
  fi
  echo "$title: $((passed - before_passed)) passed, $((failed - before_failed)) failed"
}

check asan "address sanitizer"
# It knows nothing of what other processes do.
check tsan "thread sanitizer" --label-regex '^in_process' --exclude-regex processes

finish
