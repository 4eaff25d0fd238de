# libemplace: every room of src/ but the command line.
file(GLOB library_sources CONFIGURE_DEPENDS
     src/base/*.cc src/graph/*.cc src/cluster/*.cc src/lp/*.cc src/zoo/*.cc src/cost/*.cc src/sim/*.cc
     src/search/*.cc src/bound/*.cc src/placer/*.cc src/stream/*.cc src/selection/*.cc
     src/placers/common/*.cc src/placers/local/*.cc src/tensor/*.cc
     src/tensor/tdl/*.cc src/tensor/operators/*.cc src/tensor/methods/common/*.cc
     src/io/*.cc src/run/*.cc src/report/*.cc)
if(EMPLACE_LEARN)
  file(GLOB learned_support CONFIGURE_DEPENDS src/placers/learned/support/*.cc)
  list(APPEND library_sources ${learned_support})
endif()
include(cmake/methods.cmake)

add_library(emplace_warnings INTERFACE)
if(EMPLACE_DEVELOPER)
  target_compile_options(emplace_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
                         -Wno-sign-conversion -Werror)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # GCC 12 sees overlaps in the standard library's own string operations (GCC bug 105329).
    target_compile_options(emplace_warnings INTERFACE -Wno-restrict)
  endif()
endif()

add_library(emplace STATIC ${library_sources} ${method_sources})
target_include_directories(emplace PUBLIC
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/emplace>)
target_link_libraries(emplace
  PUBLIC fmt::fmt Threads::Threads
  PRIVATE simdjson::simdjson nlohmann_json::nlohmann_json yaml-cpp ZLIB::ZLIB
          onnx onnx_proto protobuf::libprotobuf
          emplace::metis emplace::scotch PkgConfig::CLP PkgConfig::CBC TBB::tbb
          $<BUILD_INTERFACE:emplace_warnings>)
if(EMPLACE_LEARN)
  include(cmake/learn.cmake)
endif()
