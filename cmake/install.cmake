include(CMakePackageConfigHelpers)

install(TARGETS emplace EXPORT emplace-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        COMPONENT program NAMELINK_COMPONENT dev)
if(EMPLACE_LEARN)
  install(TARGETS emplace_torch LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT learn)
endif()
if(EMPLACE_MPI)
  install(TARGETS emplace_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT mpi)
endif()
install(TARGETS emplace_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
# What shells complete, and the manual: the program writes them itself.
set(emplace_share ${PROJECT_BINARY_DIR}/share)
file(MAKE_DIRECTORY ${emplace_share})
foreach(written "completion bash:emplace.bash" "completion zsh:_emplace" "completion fish:emplace.fish" "man:emplace.1")
  string(REGEX REPLACE ":.*" "" arguments "${written}")
  string(REGEX REPLACE ".*:" "" name "${written}")
  separate_arguments(arguments)
  list(APPEND emplace_writing COMMAND emplace_cli ${arguments} > ${emplace_share}/${name})
endforeach()
add_custom_command(TARGET emplace_cli POST_BUILD ${emplace_writing} VERBATIM)
install(FILES ${emplace_share}/emplace.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
        COMPONENT program RENAME emplace)
install(FILES ${emplace_share}/_emplace DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT program)
install(FILES ${emplace_share}/emplace.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d
        COMPONENT program)
install(FILES ${emplace_share}/emplace.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program RENAME copyright)
install(DIRECTORY include/emplace DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev)

# find_package(emplace) and pkg-config emplace. The headers need the standard library alone.
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/emplace)
install(EXPORT emplace-targets NAMESPACE emplace:: DESTINATION ${package_dir} COMPONENT dev)
configure_package_config_file(cmake/emplace-config.cmake.in ${PROJECT_BINARY_DIR}/emplace-config.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/emplace-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/emplace-config.cmake ${PROJECT_BINARY_DIR}/emplace-config-version.cmake
        DESTINATION ${package_dir} COMPONENT dev)
# So that the folder can be moved.
file(RELATIVE_PATH prefix_from_pc /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/emplace.pc.in ${PROJECT_BINARY_DIR}/emplace.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/emplace.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
# Where tools/sbom.py has written it, as for packages.
install(FILES ${emplace_share}/sbom.spdx.json DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program OPTIONAL)
