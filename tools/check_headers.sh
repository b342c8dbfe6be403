#!/usr/bin/env bash
# Checks that every public header compiles alone, without the headers a user includes before it.
set -euo pipefail
cd "$(dirname "$0")/.."

check() {
  echo "#include \"$1\"" |
    g++ -std=c++20 -Wall -Wextra -Werror -fsyntax-only -Iinclude -x c++ - || {
    echo "$1 does not compile alone"
    return 1
  }
}
export -f check

# The GPU targets need their vendor's compiler.
tools/project_files.py .h | sed -n 's|^include/||p' | grep -vE 'device/target_(cuda|hip)\.h$' |
  xargs -P "$(nproc)" -I {} bash -c 'check {}'
