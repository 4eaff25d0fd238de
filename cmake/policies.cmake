# policies/KIND.policy become part of libemplace_torch: one generated file that the assembler includes their bytes in.
file(GLOB policy_files CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/policies/*.policy)
list(LENGTH policy_files policy_count)
set(policy_bytes "")
set(policy_entries "")
foreach(path IN LISTS policy_files)
  get_filename_component(kind ${path} NAME_WE)
  string(MAKE_C_IDENTIFIER emplace_policy_${kind} symbol)
  string(APPEND policy_bytes "__asm__(\".pushsection .rodata\\n\"
        \"${symbol}: .incbin \\\"${path}\\\"\\n\"
        \"${symbol}_end: .byte 0\\n\"
        \".popsection\\n\");
extern \"C\" const char ${symbol}[], ${symbol}_end[];\n")
  string(APPEND policy_entries "{\"${kind}\", {${symbol},
        static_cast<std::size_t>(${symbol}_end - ${symbol})}},\n")
endforeach()
set(policy_source ${CMAKE_CURRENT_BINARY_DIR}/generated/shipped_policies.cc)
configure_file(cmake/shipped_policies.cc.in ${policy_source} @ONLY)
set_source_files_properties(${policy_source} PROPERTIES OBJECT_DEPENDS "${policy_files}"
                            SKIP_PRECOMPILE_HEADERS ON)
target_sources(emplace_torch PRIVATE ${policy_source})
