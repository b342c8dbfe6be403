# The CUDA language, for kernels; what links no kernel needs none of it.
set(IRIDIUM_CUDA_ARCHITECTURES "90a" CACHE STRING
    "Architectures to build kernels for: a CMake list, or 'portable' for A100 to Blackwell")
if(IRIDIUM_CUDA_ARCHITECTURES STREQUAL "portable")
  set(CMAKE_CUDA_ARCHITECTURES 80 86 89 90a 100)
else()
  set(CMAKE_CUDA_ARCHITECTURES ${IRIDIUM_CUDA_ARCHITECTURES})
endif()
enable_language(CUDA)
find_package(CUDAToolkit 13.0 REQUIRED)
# CMake 3.25 does not know C++20 for CUDA.
set(CMAKE_CUDA_STANDARD_REQUIRED OFF)
string(APPEND CMAKE_CUDA_FLAGS " -std=c++20")
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
