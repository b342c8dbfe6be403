# iridium_kernel_sources(target file...): C++ files with kernels. Where the CUDA backend is built, nvcc
# compiles them, for the CPU and the GPU; elsewhere the C++ compiler, for the CPU alone.
function(iridium_kernel_sources target)
  target_sources(${target} PRIVATE ${ARGN})
  if(IRIDIUM_CUDA)
    set_source_files_properties(${ARGN} PROPERTIES LANGUAGE CUDA)
  endif()
endfunction()
