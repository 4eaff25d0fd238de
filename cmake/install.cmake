include(CMakePackageConfigHelpers)

install(TARGETS emplace EXPORT emplace-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(EMPLACE_LEARN)
  install(TARGETS emplace_torch LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(TARGETS emplace_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY include/emplace DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

# find_package(emplace) and pkg-config emplace. The headers need the standard library alone.
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/emplace)
install(EXPORT emplace-targets NAMESPACE emplace:: DESTINATION ${package_dir})
configure_package_config_file(cmake/emplace-config.cmake.in ${PROJECT_BINARY_DIR}/emplace-config.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/emplace-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/emplace-config.cmake ${PROJECT_BINARY_DIR}/emplace-config-version.cmake
        DESTINATION ${package_dir})
# So that the folder can be moved.
file(RELATIVE_PATH prefix_from_pc /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/emplace.pc.in ${PROJECT_BINARY_DIR}/emplace.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/emplace.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
