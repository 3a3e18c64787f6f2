# The command `ferry`: what it plans and simulates with, and what is typed and printed.
ferry_room(scenarios PRIVATE ferry_toml)
ferry_room(sim/check PRIVATE $<BUILD_INTERFACE:nlohmann_json::nlohmann_json>)
foreach(room choices explore gpu program run/training run field)
  ferry_room(sim/${room})
endforeach()
ferry_four_at_a_time(ferry_sim_program)
ferry_four_at_a_time(ferry_sim_run_training)
ferry_four_at_a_time(ferry_sim_run)
ferry_room(sim/peak PRIVATE $<BUILD_INTERFACE:nlohmann_json::nlohmann_json>)
ferry_room(plan PRIVATE Threads::Threads)
if(rapidcheck_FOUND)
  ferry_room(verify/programs PUBLIC rapidcheck)
  foreach(room oracles trials hunted mutants report core schedulers)
    ferry_room(verify/${room})
  endforeach()
  ferry_room(verify/campaign PUBLIC Threads::Threads)
  foreach(room programs oracles trials campaign)
    ferry_four_at_a_time(ferry_verify_${room})
  endforeach()
  ferry_room(verify/hunt PRIVATE $<BUILD_INTERFACE:CLI11::CLI11>)
  ferry_room(verify/include)
  target_include_directories(ferry_verify_include
                             INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/verify/include>
                                       $<INSTALL_INTERFACE:include>)
endif()

# Where programs, hardware and plans are looked for when neither FERRY_SCENARIOS nor an installed
# tree beside the executable says otherwise (scenarios/paths.h).
set(ferry_scenarios_folder ${PROJECT_SOURCE_DIR}/scenarios)
# What `ferry train` and `ferry verify` say where there is no such program beside `ferry`.
set(ferry_without_libtorch
    "needs LibTorch, and this Ferry was built without it: run ./dev torch, and build again")
set(ferry_without_rapidcheck
    "needs RapidCheck, and this Ferry was built without it: install librapidcheck-dev, and build\
 again")
include(GNUInstallDirs)
if(FERRY_PYTHON_ONLY) # all of it in the package; python/ferry_command is what one types
  set(CMAKE_INSTALL_BINDIR torch_ferry/bin)
  set(CMAKE_INSTALL_DATADIR torch_ferry/share)
  set(ferry_scenarios_folder /usr/share/ferry/scenarios)
  set(ferry_without_libtorch
      "is not in the Python package: a build of Ferry's tree brings it (./dev demo there)")
  set(ferry_without_rapidcheck ${ferry_without_libtorch})
endif()
target_compile_definitions(ferry_scenarios
                           PRIVATE FERRY_SOURCE_SCENARIOS="${ferry_scenarios_folder}")

# CLI11, fmt and JSON cost a file three seconds, whatever is in it: they are parsed once for all of
# these rooms, eight files are compiled as one, and what is typed and printed is not optimised.
set(ferry_cli_uses CLI11::CLI11 ferry_text nlohmann_json::nlohmann_json)
add_library(ferry_cli_pch OBJECT ${PROJECT_SOURCE_DIR}/cmake/pch.cpp)
target_link_libraries(ferry_cli_pch PRIVATE ferry_warnings ${ferry_cli_uses})
target_compile_options(ferry_cli_pch PRIVATE -O0)
target_precompile_headers(ferry_cli_pch PRIVATE <CLI/CLI.hpp> <fmt/core.h>
                                                <nlohmann/json.hpp>)
function(ferry_use_cli_pch target)
  target_precompile_headers(${target} REUSE_FROM ferry_cli_pch)
  target_compile_options(${target} PRIVATE -O0)
  ferry_some_at_a_time(${target} 8)
endfunction()
function(ferry_cli_room room)
  ferry_room(${room} PRIVATE ${ferry_cli_uses})
  ferry_library_name(${room} library)
  ferry_use_cli_pch(${library})
endfunction()

ferry_cli_room(cli/console)
ferry_cli_room(cli)
target_compile_definitions(
  ferry_cli PRIVATE FERRY_WITHOUT_LIBTORCH="${ferry_without_libtorch}"
                    FERRY_WITHOUT_RAPIDCHECK="${ferry_without_rapidcheck}")
ferry_room(cli/ranks PRIVATE ferry_mpi)
include(FerryPage)
ferry_cli_room(cli/page)
target_sources(ferry_cli_page PRIVATE ${ferry_page_source})
ferry_cli_room(cli/report)
ferry_cli_room(cli/explain)
ferry_cli_room(cli/sweep)
# Of another version's results none is taken for this one's.
target_compile_definitions(ferry_cli_sweep PRIVATE FERRY_VERSION="${PROJECT_VERSION}")
add_executable(ferry cli/ferry/main.cpp)
target_link_libraries(ferry PRIVATE ferry_cli ferry_cli_explain ferry_cli_report ferry_cli_sweep
                                    ferry_warnings)
target_compile_definitions(ferry PRIVATE FERRY_VERSION="${PROJECT_VERSION}")
set(ferry_programs ferry)

# `ferry verify` runs ferry-verify, which stands beside it: it alone needs RapidCheck.
if(rapidcheck_FOUND)
  ferry_cli_room(cli/verify)
  target_compile_definitions(ferry_cli_verify PRIVATE FERRY_VERSION="${PROJECT_VERSION}")
  add_executable(ferry-verify cli/verify/main.cpp)
  target_link_libraries(ferry-verify PRIVATE ferry_cli_verify ferry_warnings)
  target_compile_definitions(ferry-verify PRIVATE FERRY_VERSION="${PROJECT_VERSION}")
  list(APPEND ferry_programs ferry-verify)
endif()
foreach(program IN LISTS ferry_programs)
  ferry_portable(${program})
  ferry_jemalloc(${program})
endforeach()

install(TARGETS ${ferry_programs} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(
  DIRECTORY scenarios/
  DESTINATION ${CMAKE_INSTALL_DATADIR}/ferry/scenarios
  FILES_MATCHING
  PATTERN "*.toml"
  PATTERN "*.jsonl")
