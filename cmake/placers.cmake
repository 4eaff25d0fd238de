# A placer is one file src/placers/<family>/<key>.cc that defines register_<key>. This writes the
# function that calls them all: an explicit list cannot be dropped by a linker, as static
# initialisers in a static library are.
file(GLOB placer_sources CONFIGURE_DEPENDS src/placers/heuristic/*.cc src/placers/partition/*.cc
     src/placers/search/*.cc src/placers/exact/*.cc)
if(EMPLACE_LEARN)
  file(GLOB learned_sources CONFIGURE_DEPENDS src/placers/learned/*.cc)
  list(APPEND placer_sources ${learned_sources})
endif()

set(declarations "")
set(calls "")
foreach(source IN LISTS placer_sources)
  get_filename_component(key ${source} NAME_WE)
  string(APPEND declarations "void register_${key}(PlacerRegistry& registry);\n")
  string(APPEND calls "    register_${key}(filled);\n")
endforeach()

set(placer_registration ${PROJECT_BINARY_DIR}/generated/all_placers.cc)
configure_file(${CMAKE_CURRENT_LIST_DIR}/all_placers.cc.in ${placer_registration} @ONLY)
