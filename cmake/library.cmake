# libemplace: every room of src/ but the command line, those that see libtorch (cmake/learn.cmake) and the file that
# sees MPI (cmake/mpi.cmake).
# What searches spend their time in is compiled for speed; what runs once, so that it compiles quickly.
set(fast_rooms sim bound stream selection placers/local placers/common)
set(light_rooms zoo run report api placers/external/support)
set(other_rooms base dist graph cluster lp cost search placer tensor tensor/tdl tensor/operators tensor/captured
                tensor/methods/common io)

add_library(emplace_warnings INTERFACE)
if(EMPLACE_DEVELOPER)
  target_compile_options(emplace_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
                         -Wno-sign-conversion -Werror)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # GCC 12 sees overlaps and broken bounds in the standard library's own strings (GCC bug 105329).
    target_compile_options(emplace_warnings INTERFACE -Wno-restrict -Wno-array-bounds -Wno-stringop-overflow
                           -Wno-stringop-overread)
    if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")  # and values without a beginning, where sanitizers look
      target_compile_options(emplace_warnings INTERFACE -Wno-maybe-uninitialized)
    endif()
  endif()
endif()

# What each part of the library is compiled with.
add_library(emplace_private INTERFACE)
target_include_directories(emplace_private INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(emplace_private INTERFACE fmt::fmt Threads::Threads simdjson::simdjson
                      nlohmann_json::nlohmann_json yaml-cpp ZLIB::ZLIB onnx onnx_proto protobuf::libprotobuf
                      PkgConfig::ISAL PkgConfig::HWLOC emplace::metis emplace::scotch PkgConfig::CLP
                      PkgConfig::CBC TBB::tbb)
target_compile_options(emplace_private INTERFACE -fno-semantic-interposition)

function(emplace_rooms variable)
  set(found)
  foreach(room IN LISTS ARGN)
    file(GLOB sources CONFIGURE_DEPENDS src/${room}/*.cc)
    list(APPEND found ${sources})
  endforeach()
  set(${variable} ${found} PARENT_SCOPE)
endfunction()

include(cmake/methods.cmake)
emplace_rooms(fast_sources ${fast_rooms})
emplace_rooms(light_sources ${light_rooms})
emplace_rooms(other_sources ${other_rooms})
list(FILTER other_sources EXCLUDE REGEX "/mpi_transport\\.cc$")
if(EMPLACE_LEARN)
  emplace_rooms(learned_sources placers/learned/support)
  list(APPEND light_sources ${learned_sources})
endif()
# Loads what needs libtorch, or says that it is not there.
list(APPEND light_sources src/learn/backend_loader.cc src/exec/backend_loader.cc)

add_library(emplace_fast OBJECT ${fast_sources})
target_compile_options(emplace_fast PRIVATE $<$<CONFIG:Release>:-O3>)
add_library(emplace_light OBJECT ${light_sources})
target_compile_options(emplace_light PRIVATE $<$<CONFIG:Release>:-O1>)
target_compile_definitions(emplace_light PRIVATE EMPLACE_VERSION="${PROJECT_VERSION}")
add_library(emplace_other OBJECT ${other_sources} ${method_sources})
include(cmake/page.cmake)
foreach(part emplace_fast emplace_light emplace_other)
  target_link_libraries(${part} PRIVATE emplace_private emplace_warnings)
  target_precompile_headers(${part} PRIVATE cmake/precompiled.h)
endforeach()

# The hottest code stays as it is compiled; models and searches are alike and name things alike.
foreach(part emplace_fast emplace_light emplace_other)
  emplace_together(${part} APART src/sim src/zoo src/placers/local src/placers/common src/placers/search)
endforeach()

# By which name the loader knows the libtorch that libemplace_torch needs.
if(EMPLACE_LEARN AND TARGET torch_cpu)
  get_target_property(torch_configurations torch_cpu IMPORTED_CONFIGURATIONS)
  list(GET torch_configurations 0 torch_configuration)
  get_target_property(torch_soname torch_cpu IMPORTED_SONAME_${torch_configuration})
  if(torch_soname)
    set_source_files_properties(${PROJECT_SOURCE_DIR}/src/base/loaded_library.cc PROPERTIES
                                COMPILE_DEFINITIONS EMPLACE_TORCH_SONAME="${torch_soname}"
                                SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endif()

add_library(emplace SHARED)
target_link_libraries(emplace PRIVATE emplace_fast emplace_light emplace_other $<BUILD_INTERFACE:emplace_private> ${CMAKE_DL_LIBS})
target_include_directories(emplace PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                           $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(emplace PUBLIC cxx_std_20)
# The parts of libtorch and MPI are found beside it.
set_target_properties(emplace PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
                      LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR} BUILD_RPATH "\$ORIGIN"
                      INSTALL_RPATH "\$ORIGIN")

# For programs of our own that look inside: the command line, tests, benchmarks.
add_library(emplace_inside INTERFACE)
target_link_libraries(emplace_inside INTERFACE emplace fmt::fmt Threads::Threads)
target_include_directories(emplace_inside INTERFACE ${PROJECT_SOURCE_DIR}/src)

include(cmake/event_proto.cmake)
if(EMPLACE_LEARN)
  include(cmake/learn.cmake)
endif()
if(EMPLACE_MPI)
  include(cmake/mpi.cmake)
endif()
