# Compiles through ccache where it is found. Every path of this tree is given to ccache relative to the build folder, and
# in debug information relative to the top, so that a checkout in another folder finds the objects of this one.
option(IRIDIUM_CCACHE "Compile through ccache where it is found" ON)
if(IRIDIUM_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(IRIDIUM_CCACHE_PROGRAM ccache)
  mark_as_advanced(IRIDIUM_CCACHE_PROGRAM)
  if(IRIDIUM_CCACHE_PROGRAM)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=true
      CCACHE_SLOPPINESS=pch_defines,time_macros
      # A host compiler's option that nvcc passes on; ccache knows those of a compiler that it calls itself.
      CCACHE_IGNOREOPTIONS=-Xcompiler=-ffile-prefix-map=*
      ${IRIDIUM_CCACHE_PROGRAM})
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
  endif()
endif()
add_compile_options(
  $<$<COMPILE_LANGUAGE:CXX>:-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.>)
