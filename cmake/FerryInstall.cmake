# find_package(ferry COMPONENTS ...): what its users link and include. `real` is Ferry over
# LibTorch, `verify` the simulator and the hunt for a scheduler's faults. Each component has a file
# of targets; what both stand on has a third one, `core`.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(ferry_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/ferry)

# ferry_install(FILE target...): into the library folder, and into ferry-FILE.cmake.
function(ferry_install file)
  install(TARGETS ${ARGN} EXPORT ferry-${file} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT ferry-${file} NAMESPACE ferry:: DESTINATION ${ferry_package_dir})
endfunction()

# ferry_install_headers(FOLDER...): the rooms' headers, which those that users include include.
function(ferry_install_headers)
  foreach(folder IN LISTS ARGN)
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder} DESTINATION include/ferry
            FILES_MATCHING PATTERN "*.h" PATTERN include EXCLUDE)
  endforeach()
endfunction()

set(FERRY_COMPONENTS)
ferry_install(
  core ferry_shared_seam ferry_shared_adaptors ferry_shared_offload ferry_shared_transfer
  ferry_shared_skip ferry_shared_checkpoint ferry_shared_replay ferry_shared_state
  ferry_shared_pipeline ferry_formats)
ferry_install_headers(shared formats)

if(TARGET ferry_real_capture)
  list(APPEND FERRY_COMPONENTS real)
  set(ferry_installed
      ferry_real_disk ferry_real_tensors ferry_real_autograd ferry_real_engine ferry_real_cpu
      ferry_real_include ferry_real_api ferry_real_pipeline ferry_real_capture)
  set_target_properties(ferry_real_capture PROPERTIES EXPORT_NAME real)
  if(TARGET ferry_torch_cuda)
    list(APPEND ferry_installed ferry_real_cuda ferry_real_cuda_backend)
    set_target_properties(ferry_real_cuda_backend PROPERTIES EXPORT_NAME real_cuda)
  endif()
  ferry_install(real ${ferry_installed})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/real/include/ferry DESTINATION include
          FILES_MATCHING PATTERN "*.h")
  install(FILES ${PROJECT_SOURCE_DIR}/cmake/FerryTorch.cmake DESTINATION ${ferry_package_dir})
endif()

if(TARGET ferry_verify_include)
  list(APPEND FERRY_COMPONENTS verify)
  set_target_properties(ferry_sim_run_training PROPERTIES EXPORT_NAME sim)
  set_target_properties(ferry_verify_include PROPERTIES EXPORT_NAME verify)
  ferry_install(
    verify ferry_toml ferry_scenarios ferry_sim_choices ferry_sim_check ferry_sim_explore
    ferry_sim_gpu ferry_sim_program ferry_sim_run_training ferry_verify_programs
    ferry_verify_oracles ferry_verify_hunted ferry_verify_mutants ferry_verify_campaign
    ferry_verify_report ferry_verify_hunt ferry_verify_include)
  ferry_install_headers(scenarios sim verify)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/verify/include/ferry DESTINATION include
          FILES_MATCHING PATTERN "*.h")
endif()

configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/cmake/ferry-config.cmake.in ${PROJECT_BINARY_DIR}/ferry-config.cmake
  INSTALL_DESTINATION ${ferry_package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ferry-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/ferry-config.cmake
              ${PROJECT_BINARY_DIR}/ferry-config-version.cmake
        DESTINATION ${ferry_package_dir})
