# src/io/event.proto as C++, which protoc writes to build/generated/io. A target of its own, so that it waits for
# nothing and gets no warnings.
set(generated ${PROJECT_BINARY_DIR}/generated)
set(event_sources ${generated}/io/event.pb.cc ${generated}/io/event.pb.h)
add_custom_command(
  OUTPUT ${event_sources}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${generated}
  COMMAND protobuf::protoc --proto_path=${PROJECT_SOURCE_DIR}/src --cpp_out=${generated}
          ${PROJECT_SOURCE_DIR}/src/io/event.proto
  DEPENDS ${PROJECT_SOURCE_DIR}/src/io/event.proto
  VERBATIM)
add_library(emplace_event_proto OBJECT ${event_sources})
target_include_directories(emplace_event_proto PRIVATE ${generated})
target_link_libraries(emplace_event_proto PRIVATE protobuf::libprotobuf)
target_link_libraries(emplace PRIVATE emplace_event_proto)
target_include_directories(emplace_other SYSTEM PRIVATE ${generated})
add_dependencies(emplace_other emplace_event_proto)
