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
# Loops over numbers are compiled for speed. The rest calls libtorch: it has 2 % of the time of learning, and is compiled
# in four fifths of the time at -O1. With a precompiled libtorch, the level is that of the header: two libraries.
set(torch_loops exec/native_pools exec/native_updates exec/random learn/encoders/additive_attention learn/encoders/lstm
                learn/policies/seq2seq_net)
list(TRANSFORM torch_loops PREPEND ${PROJECT_SOURCE_DIR}/src/)
list(TRANSFORM torch_loops APPEND .cc)
list(REMOVE_ITEM torch_sources ${torch_loops})
add_library(emplace_torch_loops OBJECT ${torch_loops})
target_link_libraries(emplace_torch_loops PRIVATE emplace)
target_compile_options(emplace_torch_loops PRIVATE $<$<CONFIG:Release>:-O3>)
add_library(emplace_torch SHARED ${torch_sources})
target_link_libraries(emplace_torch PUBLIC emplace PRIVATE emplace_torch_loops)
target_compile_options(emplace_torch PRIVATE $<$<CONFIG:Release>:-O1>)
foreach(part emplace_torch_loops emplace_torch)
  # libtorch may bring headers of another fmt, which its include path puts first: nothing of fmt is linked here.
  target_include_directories(${part} PRIVATE src)
  target_link_libraries(${part} PRIVATE ${TORCH_LIBRARIES} ${CMAKE_DL_LIBS} fmt::fmt-header-only
                        $<BUILD_INTERFACE:emplace_warnings>)
  target_compile_options(${part} PRIVATE -fno-semantic-interposition)
  target_precompile_headers(${part} PRIVATE src/learn/nn/torch.h)
  emplace_together(${part})
endforeach()
# Plain loops, which the compiler turns into vector code only where roots report no errors.
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/exec/loops.cc ${PROJECT_SOURCE_DIR}/src/exec/pool_loops.cc
                            PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON
                            SKIP_PRECOMPILE_HEADERS ON
                            COMPILE_OPTIONS "$<$<CONFIG:Release>:-O3>;-fno-math-errno;-fno-trapping-math")
# Without a definition of its own, so that others can use its precompiled header.
set_target_properties(emplace_torch PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}
                      INSTALL_RPATH $ORIGIN DEFINE_SYMBOL "")
include(cmake/policies.cmake)
