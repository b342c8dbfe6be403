#!/usr/bin/env bash
# Runs the tests of the build folder: test.sh [ctest option...]. `make test` builds first.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/counting.sh

run_ctest build tests "$@"
python3 tools/slow_tests.py build/test-results.xml
finish
