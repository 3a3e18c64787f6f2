# What comes from Debian's packages. All that is missing is named at once, with what installs it.
#
# Sets FERRY_COMMAND: whether the command `ferry` is built, which needs more than the libraries do.

# ferry_package(MISSING NAME VERSION DEBIAN): found, or its Debian package is appended to MISSING.
macro(ferry_package missing name version debian)
  find_package(${name} ${version} QUIET)
  if(NOT ${name}_FOUND)
    list(APPEND ${missing} ${debian})
  endif()
endmacro()

set(FERRY_COMMAND "" CACHE STRING "The command `ferry`, beside the Python module alone (or OFF)")
set(ferry_missing)
set(ferry_missing_command)
find_package(Threads REQUIRED)
ferry_package(ferry_missing nlohmann_json 3.11 nlohmann-json3-dev)
if(FERRY_PYTHON_ONLY) # of the Python that pip runs in; other builds do without the module
  find_package(Python QUIET COMPONENTS Interpreter Development.Module)
  if(NOT Python_Development.Module_FOUND)
    list(APPEND ferry_missing python3-dev)
  endif()
endif()
ferry_package(ferry_missing_command tomlplusplus 3.3 libtomlplusplus-dev)
ferry_package(ferry_missing_command CLI11 2.1 libcli11-dev)
ferry_package(ferry_missing_command fmt 9 libfmt-dev)

# The module does without the command, unless somebody asked for it.
if(NOT FERRY_PYTHON_ONLY OR FERRY_COMMAND)
  list(APPEND ferry_missing ${ferry_missing_command})
  set(FERRY_COMMAND ON)
elseif(FERRY_COMMAND STREQUAL "" AND NOT ferry_missing_command)
  set(FERRY_COMMAND ON)
elseif(FERRY_COMMAND STREQUAL "")
  set(FERRY_COMMAND OFF)
  list(JOIN ferry_missing_command " " ferry_missing_command)
  message(NOTICE "ferry: THE MODULE ALONE, without the command `ferry` and ferry.plan(). For "
                 "these: apt-get install ${ferry_missing_command}")
endif()
if(FERRY_TESTS)
  ferry_package(ferry_missing GTest "" libgtest-dev)
endif()
if(ferry_missing)
  list(JOIN ferry_missing " " ferry_missing)
  message(FATAL_ERROR "ferry: missing packages; as root: apt-get install ${ferry_missing}")
endif()
