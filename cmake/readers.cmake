# What reads files and texts, and the rooms that it needs: compiled once more where sanitizers look at it, for the
# fuzzers and for the tests' own small part. Sets reader_sources and reader_libraries.
set(readers graph_json json_fields json_quote cluster_yaml cluster_yaml_fields cluster_yaml_kinds cluster_yaml_writer dnn_partitioning
            narrow_floats pipedream iopddl placement_json file file_calls gzip topological_order onnx_constant onnx_flatten onnx_fold
            onnx_fold_layout onnx_functions onnx_guard onnx_meaning onnx_node onnx_reader onnx_shapes onnx_value onnx_walk
            collectives_file curve_table importers module_devices onnx_devices partition_file)
list(TRANSFORM readers PREPEND ${PROJECT_SOURCE_DIR}/src/io/)
list(TRANSFORM readers APPEND .cc)
file(GLOB reader_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/base/*.cc ${PROJECT_SOURCE_DIR}/src/graph/*.cc
     ${PROJECT_SOURCE_DIR}/src/cluster/*.cc ${PROJECT_SOURCE_DIR}/src/cost/*.cc
     ${PROJECT_SOURCE_DIR}/src/search/*.cc)
list(APPEND reader_sources ${readers} ${PROJECT_SOURCE_DIR}/fuzz/targets.cc
     ${PROJECT_SOURCE_DIR}/src/selection/selection_problem.cc ${PROJECT_SOURCE_DIR}/src/sim/placement.cc
     ${PROJECT_SOURCE_DIR}/src/placer/placement_messages.cc ${PROJECT_SOURCE_DIR}/src/placers/external/support/protocol.cc ${PROJECT_SOURCE_DIR}/src/learn/train/state.cc
     ${PROJECT_SOURCE_DIR}/src/report/page_results.cc
     ${PROJECT_SOURCE_DIR}/src/report/profile_phases.cc ${PROJECT_SOURCE_DIR}/src/zoo/model_name.cc)
set(reader_libraries fmt::fmt Threads::Threads simdjson::simdjson nlohmann_json::nlohmann_json yaml-cpp ZLIB::ZLIB
    onnx onnx_proto protobuf::libprotobuf PkgConfig::HWLOC TBB::tbb ${CMAKE_DL_LIBS})
