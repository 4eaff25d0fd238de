# libemplace_mpi: the file that sees MPI. libemplace loads it when a process joins others (src/base/loaded_library.h).
add_library(emplace_mpi SHARED src/dist/mpi_transport.cc)
target_include_directories(emplace_mpi PRIVATE src)
target_link_libraries(emplace_mpi PUBLIC emplace PRIVATE MPI::MPI_CXX fmt::fmt Threads::Threads
                      $<BUILD_INTERFACE:emplace_warnings>)
# Of MPI's C functions alone.
target_compile_definitions(emplace_mpi PRIVATE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
set_target_properties(emplace_mpi PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR} INSTALL_RPATH $ORIGIN)
