# `cmake --install`: the library, its headers, its CMake package. cli/ installs itself.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/iridium)

install(TARGETS iridium EXPORT iridiumTargets)
install(DIRECTORY include/iridium TYPE INCLUDE FILES_MATCHING PATTERN "*.h")
install(EXPORT iridiumTargets NAMESPACE iridium:: DESTINATION ${package_dir})

configure_package_config_file(cmake/iridiumConfig.cmake.in ${PROJECT_BINARY_DIR}/iridiumConfig.cmake
  INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/iridiumConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/iridiumConfig.cmake
              ${PROJECT_BINARY_DIR}/iridiumConfigVersion.cmake
        DESTINATION ${package_dir})
