# Sourced by the scripts that run tests: they add up in passed, failed and skipped.
# shellcheck shell=bash
passed=0
failed=0
skipped=0

# run_ctest build_folder part [ctest option...]: runs the tests and adds their results.
#
# Three tests per core: many wait for timeouts, and those that compute take the place of three (PROCESSORS).
run_ctest() {
  local folder=$1 part=$2 results status=0 counts
  shift 2
  results=$PWD/$folder/test-results.xml
  rm -f "$results"
  tools/timed.sh "$part" ctest --test-dir "$folder" --parallel $((3 * $(nproc))) --output-on-failure --no-tests=error \
    --output-junit "$results" "$@" || status=$?
  counts=$(python3 tools/junit_counts.py "$results") || counts="0 1 0"
  add_counts "$counts"
  # ctest failed, and not because of a test: that counts too.
  if [[ $status -ne 0 && $(cut -d ' ' -f 2 <<< "$counts") -eq 0 ]]; then
    echo "ctest ended with $status"
    failed=$((failed + 1))
  fi
}

# add_counts "passed failed [skipped]"
add_counts() {
  local now_passed now_failed now_skipped
  read -r now_passed now_failed now_skipped <<< "$1"
  passed=$((passed + now_passed))
  failed=$((failed + now_failed))
  skipped=$((skipped + ${now_skipped:-0}))
}

# finish: prints the closing line and ends the script.
finish() {
  local line="$passed passed, $failed failed"
  if [[ $skipped -gt 0 ]]; then
    line+=", $skipped skipped"
  fi
  echo "elapsed: $((SECONDS / 60)) min $((SECONDS % 60)) s"
  echo "$line"
  [[ $failed -eq 0 ]] && exit 0
  exit 1
}
