# Boost::context, for the fibers that blocks run as on a CPU.
find_package(Boost 1.74 QUIET COMPONENTS context)
if(NOT TARGET Boost::context)
  # Some distributions ship Boost's headers and their CMake files apart from its libraries.
  find_library(IRIDIUM_BOOST_CONTEXT boost_context)
  find_path(IRIDIUM_BOOST_INCLUDE boost/context/detail/fcontext.hpp)
  if(NOT IRIDIUM_BOOST_CONTEXT OR NOT IRIDIUM_BOOST_INCLUDE)
    message(FATAL_ERROR "Boost.Context was not found (tools/setup.sh installs it)")
  endif()
  add_library(Boost::context UNKNOWN IMPORTED)
  set_target_properties(Boost::context PROPERTIES
    IMPORTED_LOCATION ${IRIDIUM_BOOST_CONTEXT}
    INTERFACE_INCLUDE_DIRECTORIES ${IRIDIUM_BOOST_INCLUDE})
endif()
