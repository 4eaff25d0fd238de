# METIS, Scotch, CLP and CBC come without CMake packages of their own. Installed beside the package file,
# so that whoever links the library finds them too.
find_package(PkgConfig REQUIRED)
pkg_check_modules(CLP REQUIRED IMPORTED_TARGET clp)
pkg_check_modules(CBC REQUIRED IMPORTED_TARGET cbc osi-clp)

function(emplace_find_solver name header path_suffixes)
  find_path(${name}_INCLUDE_DIR ${header} PATH_SUFFIXES ${path_suffixes} REQUIRED)
  set(libraries)
  foreach(library IN LISTS ARGN)
    find_library(${name}_${library}_LIBRARY ${library} REQUIRED)
    list(APPEND libraries ${${name}_${library}_LIBRARY})
  endforeach()
  if(NOT TARGET emplace::${name})
    add_library(emplace::${name} INTERFACE IMPORTED GLOBAL)
    target_include_directories(emplace::${name} INTERFACE ${${name}_INCLUDE_DIR})
    target_link_libraries(emplace::${name} INTERFACE ${libraries})
  endif()
endfunction()

emplace_find_solver(metis metis.h "" metis)
emplace_find_solver(scotch scotch.h scotch scotch scotcherr)
