# The CUDA language, for kernels; what links no kernel needs none of it.
set(IRIDIUM_CUDA_ARCHITECTURES "native" CACHE STRING
    "Architectures to build kernels for: a CMake list, 'portable' for A100 to Blackwell and later, or 'native' for this machine's GPUs, 90a where there are none")
if(IRIDIUM_CUDA_ARCHITECTURES STREQUAL "portable")
  # Machine code for what is known; PTX, without -real, for what is not.
  set(CMAKE_CUDA_ARCHITECTURES 80-real 86-real 89-real 90a-real 100 120)
elseif(IRIDIUM_CUDA_ARCHITECTURES STREQUAL "native")
  execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
    RESULT_VARIABLE status OUTPUT_VARIABLE capabilities ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT status EQUAL 0)
    # Errors are printed there, too, with versions that look like capabilities.
    set(capabilities "")
  endif()
  string(REGEX MATCHALL "[0-9]+\\.[0-9]+" capabilities "${capabilities}")
  list(REMOVE_DUPLICATES capabilities)
  list(TRANSFORM capabilities REPLACE "\\." "")
  # GPUs before A100 lack what kernels use; `iridium info` says that there is no code for them.
  list(FILTER capabilities EXCLUDE REGEX "^[1-7][0-9]$")
  # Hopper's own instructions belong to no family.
  list(TRANSFORM capabilities REPLACE "^90$" "90a")
  if(NOT capabilities)
    set(capabilities 90a)
  endif()
  set(CMAKE_CUDA_ARCHITECTURES ${capabilities})
else()
  set(CMAKE_CUDA_ARCHITECTURES ${IRIDIUM_CUDA_ARCHITECTURES})
endif()
enable_language(CUDA)
find_package(CUDAToolkit 13.0 REQUIRED)
# CMake 3.25 does not know C++20 for CUDA.
set(CMAKE_CUDA_STANDARD_REQUIRED OFF)
string(APPEND CMAKE_CUDA_FLAGS " -std=c++20")
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
