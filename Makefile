# Thin front of CMake: `make` alone lists the targets.
PREFIX ?= /usr/local
DESTDIR ?=
# Installs missing packages; `make SETUP=true …` leaves the machine alone.
SETUP ?= tools/setup.sh
JOBS ?= $(shell nproc)
# ON: compile through ccache where it is installed.
CCACHE ?= ON

# CUDA is built where a CUDA compiler and the backend's sources are.
NVCC := $(or $(shell command -v nvcc 2>/dev/null),$(wildcard /usr/local/cuda/bin/nvcc))
ifneq ($(and $(NVCC),$(wildcard src/backend/cuda/CMakeLists.txt)),)
  PRESET ?= cuda
  export CUDACXX ?= $(NVCC)
else
  PRESET ?= host
endif
export IRIDIUM_CCACHE = $(CCACHE)

CONFIGURE = cmake --preset $(PRESET) --log-level=NOTICE -D IRIDIUM_CCACHE=$(CCACHE)
BUILD = tools/timed.sh build cmake --build build --parallel $(JOBS)

.DEFAULT_GOAL := help
.PHONY: help setup build build-all demo test quick test-full lint test-sanitizers hip-check gpu-check gpu-check-full bench \
  install docs format clean

help: ## print this list
	@echo "usage: make <target>"
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

setup: ## install the packages that building and testing need
	$(SETUP) test

build: ## build the library, the command line (build/iridium) and the examples
	@$(SETUP) build
	$(CONFIGURE)
	$(BUILD) --target src/all cli/all examples/all

build-all:
	@$(SETUP) test
	$(CONFIGURE)
	$(BUILD)

demo: build ## build, then run two examples and the capture probe on four ranks
	build/iridium run -n 4 -- build/examples/01_ranks_and_arrays
	build/iridium run -n 4 -- build/examples/10_all_reduce
	build/iridium probe -n 4

test: build-all ## build everything and run every test; ends with "N passed, M failed"
	@tools/test.sh

quick: build-all ## build everything and run the tests that take seconds
	@tools/test.sh --label-regex 'quick$$'

test-full: build-all ## run every case of the collectives' tests, not only a sample; takes long
	IRIDIUM_TEST_FULL=1 build/tests/collectives/collectives_test

lint: ## check format, static analysis, layers, headers, words and settings page
	@$(SETUP) lint
	$(CONFIGURE)
	$(BUILD) --target iridium_cli
	@tools/lint.sh

test-sanitizers: ## run the tests under AddressSanitizer, UBSan and ThreadSanitizer
	@$(SETUP) sanitizers
	@tools/test_sanitizers.sh

hip-check: ## compile every kernel for AMD GPUs; runs none
	@$(SETUP) hip
	@tools/timed.sh "compiling for AMD GPUs" tools/hip_check.sh

GPU_CHECK = tools/gpu_check.sh $(if $(MODE),--mode $(MODE)) $(if $(PART),--part $(PART))

gpu-check: ## run every test that has a GPU form; MODE=… PART=… choose, tools/gpu_check.sh --help explains
	@$(GPU_CHECK)

gpu-check-full: ## the same with every case in both placements
	@$(GPU_CHECK) --full

bench: build ## measure this machine beside its peers, and regenerate docs/performance.md
	@$(SETUP) bench
	tools/bench.sh

install: build ## install under PREFIX (default /usr/local), staged in DESTDIR if set
	DESTDIR="$(DESTDIR)" cmake --install build --prefix "$(PREFIX)"

docs: build ## regenerate docs/settings.md from the code
	tools/settings_page.sh write

format: ## format all C++ files in place
	@$(SETUP) lint
	tools/project_files.py .h .cpp .cu | xargs -r clang-format-19 -i

clean: ## remove all build folders
	rm -rf build build-asan build-tsan
