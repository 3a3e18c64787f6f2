# The command `ferry`: what it plans and simulates with, and what is typed and printed.
ferry_room(scenarios PRIVATE ferry_toml)
ferry_room(sim/check PRIVATE $<BUILD_INTERFACE:nlohmann_json::nlohmann_json>)
foreach(room choices explore gpu program run field)
  ferry_room(sim/${room})
endforeach()
ferry_four_at_a_time(ferry_sim_program)
ferry_four_at_a_time(ferry_sim_run)
ferry_room(plan PRIVATE Threads::Threads)
if(rapidcheck_FOUND)
  ferry_room(verify/programs PUBLIC rapidcheck)
  foreach(room oracles promises scripts trials hunted mutants report schedulers)
    ferry_room(verify/${room})
  endforeach()
  ferry_room(verify/campaign PUBLIC Threads::Threads)
  foreach(room programs oracles promises trials campaign)
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
set(ferry_without_siblings # what `ferry train` says where there is no ferry-train beside it
    "needs LibTorch, and this Ferry was built without it: run ./dev torch, and build again")
include(GNUInstallDirs)
if(SKBUILD) # all of it in the package, which uses it by itself; python/command.py is what one types
  set(CMAKE_INSTALL_BINDIR torch_ferry/bin)
  set(CMAKE_INSTALL_DATADIR torch_ferry/share)
  set(ferry_scenarios_folder /usr/share/ferry/scenarios)
  set(ferry_without_siblings
      "is not in the Python package: a build of Ferry's tree brings it (./dev demo there)")
endif()
target_compile_definitions(ferry_scenarios
                           PRIVATE FERRY_SOURCE_SCENARIOS="${ferry_scenarios_folder}")

# CLI11 costs a file six seconds, nearly half of them to optimise what declares options: it is
# parsed once for all of them, and what is typed and printed is not optimised.
set(ferry_cli_uses CLI11::CLI11 ferry_text nlohmann_json::nlohmann_json)
ferry_room(cli PRIVATE ${ferry_cli_uses})
target_precompile_headers(ferry_cli PRIVATE <CLI/CLI.hpp> <nlohmann/json.hpp>)
target_compile_options(ferry_cli PRIVATE -O0)
set_source_files_properties(
  ${PROJECT_SOURCE_DIR}/cli/sibling.cpp
  PROPERTIES COMPILE_DEFINITIONS FERRY_WITHOUT_SIBLINGS="${ferry_without_siblings}")
ferry_room(cli/ranks PRIVATE ferry_mpi)
include(FerryPage)
ferry_room(cli/report PRIVATE ${ferry_cli_uses})
target_sources(ferry_cli_report PRIVATE ${ferry_page_source})
target_precompile_headers(ferry_cli_report REUSE_FROM ferry_cli)
target_compile_options(ferry_cli_report PRIVATE -O0)
ferry_four_at_a_time(ferry_cli_report)
ferry_room(cli/sweep PRIVATE ${ferry_cli_uses})
target_precompile_headers(ferry_cli_sweep REUSE_FROM ferry_cli)
target_compile_options(ferry_cli_sweep PRIVATE -O0)
ferry_four_at_a_time(ferry_cli_sweep)
# Of another version's results none is taken for this one's.
target_compile_definitions(ferry_cli_sweep PRIVATE FERRY_VERSION="${PROJECT_VERSION}")
if(rapidcheck_FOUND)
  ferry_room(cli/verify PRIVATE ${ferry_cli_uses})
  target_precompile_headers(ferry_cli_verify REUSE_FROM ferry_cli)
  target_compile_options(ferry_cli_verify PRIVATE -O0)
  target_compile_definitions(ferry_cli_verify PRIVATE FERRY_VERSION="${PROJECT_VERSION}")
endif()
add_executable(ferry cli/main.cpp)
target_link_libraries(ferry PRIVATE ferry_cli ferry_cli_report ferry_cli_sweep ferry_warnings
                                    CLI11::CLI11 ferry_text)
ferry_portable(ferry)
ferry_jemalloc(ferry)
target_compile_definitions(ferry PRIVATE FERRY_VERSION="${PROJECT_VERSION}"
                                         FERRY_HAS_VERIFY=$<TARGET_EXISTS:ferry_cli_verify>)
if(TARGET ferry_cli_verify)
  target_link_libraries(ferry PRIVATE ferry_cli_verify)
endif()

install(TARGETS ferry RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(
  DIRECTORY scenarios/
  DESTINATION ${CMAKE_INSTALL_DATADIR}/ferry/scenarios
  FILES_MATCHING
  PATTERN "*.toml"
  PATTERN "*.jsonl")
