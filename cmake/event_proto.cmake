# src/io/event.proto as C++, which protoc writes to build/generated/io. Its code is not ours to warn about.
set(generated ${PROJECT_BINARY_DIR}/generated)
set(event_sources ${generated}/io/event.pb.cc ${generated}/io/event.pb.h)
add_custom_command(
  OUTPUT ${event_sources}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${generated}
  COMMAND protobuf::protoc --proto_path=${PROJECT_SOURCE_DIR}/src --cpp_out=${generated}
          ${PROJECT_SOURCE_DIR}/src/io/event.proto
  DEPENDS ${PROJECT_SOURCE_DIR}/src/io/event.proto
  VERBATIM)
set_source_files_properties(${event_sources} PROPERTIES COMPILE_OPTIONS -w)
target_sources(emplace PRIVATE ${event_sources})
target_include_directories(emplace SYSTEM PRIVATE ${generated})
