# The Python that our module is for, and in a build of the package alone its LibTorch as well.
#
# Sets FERRY_PYTHON: whether the module can be built. FERRY_PYTHON_ONLY (which `pip install` sets
# in pyproject.toml) builds the package torch_ferry and no more: no tests, no benchmarks, no program
# but `ferry`.
set(FERRY_PYTHON OFF)
set(FERRY_PYTHONS "" CACHE STRING "Other Pythons that it is built for: SOABI=FOLDER-OF-HEADERS;…")

if(FERRY_PYTHON_ONLY AND NOT FERRY_TORCH)
  # The folder alone: to import torch takes seconds.
  find_package(Python REQUIRED COMPONENTS Interpreter)
  execute_process(
    COMMAND ${Python_EXECUTABLE} -c "import importlib.util as i, os
spec = i.find_spec('torch')
print(os.path.dirname(spec.origin) if spec and spec.origin else '', end='')"
    OUTPUT_VARIABLE FERRY_TORCH COMMAND_ERROR_IS_FATAL ANY)
  if(NOT FERRY_TORCH)
    message(FATAL_ERROR "ferry: ${Python_EXECUTABLE} has no torch, and torch_ferry is built "
                        "against the torch that it will run with. Install that torch first, then: "
                        "pip install --no-build-isolation .")
  endif()
elseif(FERRY_TORCH AND NOT FERRY_PYTHON_ONLY)
  # An environment has the wheel in LIB/pythonX.Y/site-packages.
  cmake_path(APPEND FERRY_TORCH ../../../../bin/python3 OUTPUT_VARIABLE ferry_python)
  cmake_path(NORMAL_PATH ferry_python)
  if(EXISTS ${ferry_python})
    set(Python_EXECUTABLE ${ferry_python})
  endif()
endif()

if(FERRY_TORCH)
  set(ferry_python_required)
  if(FERRY_PYTHON_ONLY)
    set(ferry_python_required REQUIRED)
  endif()
  find_package(Python ${ferry_python_required} COMPONENTS Interpreter Development.Module)
  set(FERRY_PYTHON ${Python_Development.Module_FOUND})
endif()
if(FERRY_TORCH AND NOT FERRY_PYTHON)
  message(STATUS "ferry: no headers of Python: without the Python module")
endif()
