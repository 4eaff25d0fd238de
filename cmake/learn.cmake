# libemplace_torch: src/learn and src/exec, the rooms that see libtorch, behind one precompiled header. libemplace
# loads it when something learns or runs for the first time (src/base/loaded_library.h).
file(GLOB_RECURSE torch_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/learn/*.cc ${PROJECT_SOURCE_DIR}/src/exec/*.cc)
list(FILTER torch_sources EXCLUDE REGEX "/backend_loader\\.cc$")
# A libtorch without CUDA executes on CPUs alone.
if(TORCH_CUDA_LIBRARIES OR TARGET torch_cuda)
  list(FILTER torch_sources EXCLUDE REGEX "/no_gpu\\.cc$")
else()
  list(FILTER torch_sources EXCLUDE REGEX "/exec/cuda/")
endif()
add_library(emplace_torch SHARED ${torch_sources})
# libtorch may bring headers of another fmt, which its include path puts first: nothing of fmt is linked here.
target_include_directories(emplace_torch PRIVATE src)
target_link_libraries(emplace_torch PUBLIC emplace PRIVATE ${TORCH_LIBRARIES} ${CMAKE_DL_LIBS}
                      fmt::fmt-header-only $<BUILD_INTERFACE:emplace_warnings>)
target_compile_options(emplace_torch PRIVATE -fno-semantic-interposition $<$<CONFIG:Release>:-O3>)
target_precompile_headers(emplace_torch PRIVATE src/learn/nn/torch.h)
emplace_together(emplace_torch)
# Plain loops, which the compiler turns into vector code only where roots report no errors.
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/exec/loops.cc ${PROJECT_SOURCE_DIR}/src/exec/pool_loops.cc
                            PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON
                            SKIP_PRECOMPILE_HEADERS ON COMPILE_OPTIONS "-fno-math-errno;-fno-trapping-math")
# Without a definition of its own, so that others can use its precompiled header.
set_target_properties(emplace_torch PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}
                      INSTALL_RPATH $ORIGIN DEFINE_SYMBOL "")
include(cmake/policies.cmake)
