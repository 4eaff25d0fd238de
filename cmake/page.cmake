# web/page.html, built from web/src by `npm run build` there and kept in the tree, becomes part of libemplace: a
# generated file that the assembler includes its bytes in.
set(page_file ${CMAKE_CURRENT_SOURCE_DIR}/web/page.html)
set(page_source ${CMAKE_CURRENT_BINARY_DIR}/generated/built_page.cc)
configure_file(cmake/built_page.cc.in ${page_source} @ONLY)
set_source_files_properties(${page_source} PROPERTIES OBJECT_DEPENDS ${page_file}
                            SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)
target_sources(emplace_light PRIVATE ${page_source})
