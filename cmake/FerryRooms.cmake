# A library for each room, from the table of rooms (cmake/rooms.txt): ferry_sim_gpu is sim/gpu's, of
# the sources in that folder, linked with the libraries of the rooms that it may see. A room without
# sources is an interface library.
#
# Sources are globbed with CONFIGURE_DEPENDS: add a file and build, there is no list to edit.

set(ferry_table ${PROJECT_SOURCE_DIR}/cmake/rooms.txt)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ferry_table})

# The root of our includes: the tree's, and of what is installed.
set(ferry_include_root $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:include/ferry>)

# ferry_library_name(ROOM OUT): sim/gpu -> ferry_sim_gpu
function(ferry_library_name room out)
  string(REPLACE "/" "_" name ${room})
  set(${out} ferry_${name} PARENT_SCOPE)
endfunction()

# ferry_sees(ROOM OUT): the libraries of the rooms that it may see. Rooms of tests are headers,
# which a release has no libraries of, though a benchmark uses some.
function(ferry_sees room out)
  file(STRINGS ${ferry_table} lines REGEX "^${room} :")
  if(NOT lines)
    message(FATAL_ERROR "cmake/rooms.txt: no room ${room}")
  endif()
  string(REGEX REPLACE "^[^:]*:.* :" "" seen ${lines})
  separate_arguments(seen UNIX_COMMAND "${seen}")
  set(libraries)
  foreach(other IN LISTS seen)
    ferry_library_name(${other} library)
    if(TARGET ${library} OR NOT other MATCHES "^tests")
      list(APPEND libraries ${library})
    endif()
  endforeach()
  set(${out} ${libraries} PARENT_SCOPE)
endfunction()

# ferry_room(ROOM [PUBLIC libraries its headers use] [PRIVATE libraries its sources use] [PCH aten
# or torch])
function(ferry_room room)
  cmake_parse_arguments(ARG "" "PCH" "PUBLIC;PRIVATE" ${ARGN})
  ferry_library_name(${room} library)
  ferry_sees(${room} seen)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${room}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$") # a program's, linked with its room
  if(sources)
    add_library(${library} STATIC ${sources})
    set(scope PUBLIC)
    target_link_libraries(${library} PRIVATE $<BUILD_INTERFACE:ferry_warnings> ${ARG_PRIVATE})
  else()
    add_library(${library} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(${library} ${scope} ${ferry_include_root})
  target_link_libraries(${library} ${scope} ${seen} ${ARG_PUBLIC})
  if(ARG_PCH)
    ferry_use_pch(${library} ${ARG_PCH})
  endif()
endfunction()
