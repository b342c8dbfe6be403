#!/usr/bin/env bash
# Compiles the device headers and every kernel for AMD GPUs and looks at a few of the instructions:
# hip_check.sh [file to compile instead of tests/hip/kernels.cpp]
#
# By clang with Debian's HIP headers and device libraries; it needs neither ROCm nor a GPU, and runs
# nothing of what it compiles. Logs and objects go to build/hip.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/counting.sh

architectures=(gfx90a gfx942)
export kernels=${1:-tests/hip/kernels.cpp}
export folder=build/hip
export bitcode=$folder/bitcode

# The device libraries, with those of gfx942 made from its sibling's: Debian's are older than it.
collect_bitcode() {
  local libraries=(/usr/lib/*/amdgcn/bitcode/*.bc) own=$bitcode/oclc_isa_version_942.bc
  rm -rf "$bitcode"
  mkdir -p "$bitcode"
  ln -s "${libraries[@]}" "$bitcode"
  export CCACHE_EXTRAFILES
  CCACHE_EXTRAFILES=$(printf '%s:' "${libraries[@]}")
  [[ -e $own ]] || llvm-dis-19 -o - "$bitcode/oclc_isa_version_940.bc" |
    sed 's/i32 9400/i32 9402/' | llvm-as-19 -o "$own"
}

# Through ccache where it is found, as CMake's builds are; it cannot know that objects have parts of the bitcode.
launcher=
if [[ ${IRIDIUM_CCACHE:-ON} == ON ]] && command -v ccache > /dev/null; then
  launcher=ccache
  export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=true
fi
export launcher

compile() {
  $launcher clang++-19 -x hip --rocm-path=/usr --rocm-device-lib-path="$bitcode" -std=c++20 -O3 \
    -Wall -Wextra -Werror -Iinclude -Isrc -Itests "$@"
}

# in_order file kernel pattern...: whether the kernel's instructions match the patterns one after
# another.
in_order() {
  local file=$1 kernel=$2
  shift 2
  sed -n "/^$kernel:/,/s_endpgm/p" "$file" |
    awk 'BEGIN { for (i = 1; i < ARGC; ++i) patterns[i] = ARGV[i]; count = ARGC; ARGC = 1; at = 1 }
      at < count && $0 ~ patterns[at] { ++at }
      END { if (at < count) print "no " patterns[at] " in its place"; exit at < count }' "$@" || {
    echo "in $kernel of $file"
    return 1
  }
}

# Without the vendor's headers, which programs may include or not.
check_headers() {
  local header
  for header in include/iridium/device/*.h; do
    [[ $header == */target_* ]] || echo "#include \"${header#include/}\""
  done > "$folder/headers_$1.cpp"
  compile --offload-arch="$1" --offload-device-only -fsyntax-only "$folder/headers_$1.cpp"
}

check_kernels() {
  compile --offload-arch="$1" -c -o "$folder/kernels_$1.o" "$kernels"
}

check_instructions() {
  local assembly=$folder/instructions_$1.s wait='s_waitcnt vmcnt\(0\)'
  compile --offload-arch="$1" --offload-device-only -S -o "$assembly" tests/hip/instructions.cpp &&
    in_order "$assembly" store_tile global_store_dwordx4 "$wait" s_barrier &&
    in_order "$assembly" announce s_barrier buffer_wbl2 "$wait" global_atomic_add
}

# Every folder of the library's kernels is among those compiled.
check_all_named() {
  local header missing=0
  for header in src/collectives/*/kernels.h src/matmul/simple.h src/matmul/tiled.h; do
    grep -qF "#include \"${header#src/}\"" tests/hip/kernels.cpp || {
      echo "tests/hip/kernels.cpp does not include ${header#src/}"
      missing=1
    }
  done
  return "$missing"
}

# part name [architecture]
part() {
  local log=$folder/$1${2:+_$2}.log
  if "check_$1" "${@:2}" > "$log" 2>&1; then
    echo "ok      $*"
  else
    echo "FAILED  $*: $log"
    head -n 40 "$log"
  fi
}
export -f compile in_order check_headers check_kernels check_instructions check_all_named part

if ! collect_bitcode; then
  echo "hip-check: no usable device libraries: tools/setup.sh hip installs Debian's"
  add_counts "0 1"
  finish
fi

# The longest first.
parts=("${architectures[@]/#/kernels }" "${architectures[@]/#/instructions }"
  "${architectures[@]/#/headers }" all_named)
printf '%s\n' "${parts[@]}" | xargs -P "$(nproc)" -L 1 bash -c 'part "$@"' part |
  tee "$folder/results" || true
# A part that ended without a word has failed too.
good=$(grep -c '^ok ' "$folder/results" || true)
add_counts "$good $((${#parts[@]} - good))"
finish
