#!/usr/bin/env bash
# Installs the Debian packages that are missing: setup.sh [build|test|lint|sanitizers|hip|bench]
set -euo pipefail

packages=(g++ make cmake ninja-build ccache libboost-context-dev libfmt-dev libcli11-dev nlohmann-json3-dev)
case "${1:-build}" in
  build) ;;
  test) packages+=(libgtest-dev python3) ;;
  lint) packages+=(libgtest-dev python3 clang-format-19 clang-tidy-19) ;;
  sanitizers) packages+=(libgtest-dev python3 clang-19 libclang-rt-19-dev llvm-19) ;;
  bench) packages+=(python3 libopenmpi-dev openmpi-bin) ;;
  hip) packages=(make ccache clang-19 clang-tools-19 lld-19 llvm-19 libamdhip64-dev rocm-device-libs) ;;
  *)
    echo "usage: setup.sh [build|test|lint|sanitizers|hip|bench]" >&2
    exit 2
    ;;
esac

if ! command -v dpkg-query > /dev/null || ! command -v apt-get > /dev/null; then
  echo "setup: not a Debian-like system, nothing was checked. Needed, by their Debian names:" >&2
  echo "  ${packages[*]}" >&2
  exit 0
fi

# dpkg-query fails when it does not know a package: then its line is missing.
installed=" $(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "${packages[@]}" 2> /dev/null |
  sed -n 's/ installed$//p' | tr '\n' ' ' || true)"
missing=()
for package in "${packages[@]}"; do
  [[ $installed == *" $package "* ]] || missing+=("$package")
done
[[ ${#missing[@]} -gt 0 ]] || exit 0

as_root=()
if [[ $(id -u) -ne 0 ]]; then
  if ! command -v sudo > /dev/null; then
    echo "setup: not root and no sudo. Have these packages installed: ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

echo "setup: installing ${missing[*]}"
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq)
"${apt[@]}" update || echo "setup: could not update the package lists, using the old ones" >&2
if ! "${apt[@]}" install -y --no-install-recommends "${missing[@]}"; then
  echo "setup: could not install: ${missing[*]}" >&2
  exit 1
fi
