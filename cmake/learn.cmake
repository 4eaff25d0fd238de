# src/learn and src/exec: the rooms that see libtorch, behind one precompiled header.
file(GLOB_RECURSE learn_sources CONFIGURE_DEPENDS src/learn/*.cc src/exec/*.cc)
add_library(emplace_learn OBJECT ${learn_sources})
target_include_directories(emplace_learn PRIVATE src)
# libtorch may bring headers of another fmt, which its include path puts first: nothing of fmt is linked here.
target_link_libraries(emplace_learn PRIVATE ${TORCH_LIBRARIES} fmt::fmt-header-only emplace_warnings)
target_precompile_headers(emplace_learn PRIVATE src/learn/nn/torch.h)
target_sources(emplace PRIVATE $<TARGET_OBJECTS:emplace_learn>)
foreach(library IN LISTS TORCH_LIBRARIES CMAKE_DL_LIBS)
  target_link_libraries(emplace PRIVATE $<LINK_ONLY:${library}>)
endforeach()
include(cmake/policies.cmake)
