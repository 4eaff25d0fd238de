# The version: of the last tag v1.2.3, in a clone that has one; of the archive, where git made one of a clone
# (.gitattributes); else of the release that is prepared here. Sets emplace_version to 1.2.3, and emplace_version_text
# to what also says how far the clone is beyond the tag, 1.2.3+4.g0a1b2c3. `cmake -P cmake/version.cmake` prints both.
set(emplace_release 0.1.0)

get_filename_component(emplace_source ${CMAKE_CURRENT_LIST_DIR} DIRECTORY)
set(emplace_described "")
# A file where this is a worktree. A repository around the sources, of somebody who has copied them, is not asked.
if(EXISTS ${emplace_source}/.git)
  execute_process(COMMAND git -C ${emplace_source} describe --tags --long "--match=v[0-9]*"
                  OUTPUT_VARIABLE emplace_described ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
else()
  # As `git archive` leaves it; else the line is as it stands in the repository, and no version.
  file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/archive_version.txt emplace_described LIMIT_COUNT 1)
endif()

if(emplace_described MATCHES "^v([0-9]+\\.[0-9]+\\.[0-9]+)(-([0-9]+)-(g[0-9a-f]+))?$")
  set(emplace_version ${CMAKE_MATCH_1})
  set(emplace_version_text ${CMAKE_MATCH_1})
  if(CMAKE_MATCH_3 GREATER 0)
    string(APPEND emplace_version_text "+${CMAKE_MATCH_3}.${CMAKE_MATCH_4}")
  endif()
else()
  set(emplace_version ${emplace_release})
  set(emplace_version_text ${emplace_release})
endif()

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  message(STATUS "${emplace_version} ${emplace_version_text}")
endif()
