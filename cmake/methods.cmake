# A method (a placer, a way to partition) is one file <key>.cc that defines a function to register it. This writes,
# for each registry, the function that calls them all: an explicit list cannot be dropped by a linker, as static
# initialisers in a static library are.
#
# emplace_registry(FUNCTION all_placers REGISTRY PlacerRegistry WHAT placer PREFIX register_
#                  HEADER placers/all.h SOURCES ...)
# WHAT is how errors call a method; PREFIX and a file's key make its function's name. Sets FUNCTION_source.
function(emplace_registry)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "FUNCTION;REGISTRY;WHAT;PREFIX;HEADER" "SOURCES")
  set(declarations "")
  set(calls "")
  foreach(source IN LISTS arg_SOURCES)
    get_filename_component(key ${source} NAME_WE)
    string(APPEND declarations "void ${arg_PREFIX}${key}(${arg_REGISTRY}& registry);\n")
    string(APPEND calls "    ${arg_PREFIX}${key}(filled);\n")
  endforeach()
  set(generated ${PROJECT_BINARY_DIR}/generated/${arg_FUNCTION}.cc)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/all_methods.cc.in ${generated} @ONLY)
  set(${arg_FUNCTION}_source ${generated} PARENT_SCOPE)
endfunction()

file(GLOB placer_sources CONFIGURE_DEPENDS src/placers/heuristic/*.cc src/placers/partition/*.cc
     src/placers/search/*.cc src/placers/exact/*.cc src/placers/external/*.cc)
if(EMPLACE_LEARN)
  file(GLOB learned_sources CONFIGURE_DEPENDS src/placers/learned/*.cc)
  list(APPEND placer_sources ${learned_sources})
endif()
emplace_registry(FUNCTION all_placers REGISTRY PlacerRegistry WHAT placer PREFIX register_
                 HEADER placers/all.h SOURCES ${placer_sources})

file(GLOB partition_sources CONFIGURE_DEPENDS src/tensor/methods/*.cc)
emplace_registry(FUNCTION all_partition_methods REGISTRY PartitionRegistry WHAT "partitioning method"
                 PREFIX register_partition_ HEADER tensor/methods/all.h SOURCES ${partition_sources})

set(method_sources ${placer_sources} ${all_placers_source} ${partition_sources} ${all_partition_methods_source})
