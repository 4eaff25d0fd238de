include(CMakePackageConfigHelpers)

install(TARGETS emplace EXPORT emplace-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(EMPLACE_LEARN)
  install(TARGETS emplace_torch LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(TARGETS emplace_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY src/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/emplace
        FILES_MATCHING PATTERN "*.h" PATTERN "cli" EXCLUDE PATTERN "onnx_*" EXCLUDE)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/emplace)
install(EXPORT emplace-targets NAMESPACE emplace:: DESTINATION ${package_dir})
configure_package_config_file(cmake/emplace-config.cmake.in
                              ${PROJECT_BINARY_DIR}/emplace-config.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/emplace-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/emplace-config.cmake
              ${PROJECT_BINARY_DIR}/emplace-config-version.cmake
              cmake/solvers.cmake cmake/dependencies.cmake
        DESTINATION ${package_dir})
