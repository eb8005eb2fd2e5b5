find_package(yaml-cpp REQUIRED)

add_library(simulation_server STATIC
            api_server.cc
            server/batch_jobs.cc
            server/custom_schema.cc
            server/garbage.cc
            server/job_rules.cc
            server/kinds.cc
            server/metadata.cc
            server/patch.cc
            server/pods.cc
            server/pool_rules.cc
            server/query.cc
            server/queue_rules.cc
            server/reader.cc
            server/removal.cc
            server/resources.cc
            server/run_rules.cc
            server/schema.cc
            server/status.cc
            server/storage.cc
            server/watches.cc
            server/writer.cc)
target_link_libraries(simulation_server PUBLIC holdfast_core PRIVATE holdfast_reconciler yaml-cpp)
target_compile_options(simulation_server PRIVATE -O2)
set_target_properties(simulation_server PROPERTIES UNITY_BUILD ON)
set_source_files_properties(
  server/custom_schema.cc PROPERTIES COMPILE_DEFINITIONS
                                     "HOLDFAST_CRDS=\"${CMAKE_SOURCE_DIR}/crds\"")

holdfast_test(
  simulation_server_test
  SOURCES
  server_test.cc
  server/consistency_test.cc
  server/queues_test.cc
  server/reads_test.cc
  server/removal_test.cc
  LIBRARIES
  simulation_server)

# tests/integration/test_simulated_server.py compares its answers with a real API server's.
add_executable(simulation-run-script server/run_script.cc)
target_link_libraries(simulation-run-script PRIVATE simulation_server)
add_test(NAME simulation_script COMMAND simulation-run-script
                                        ${CMAKE_CURRENT_SOURCE_DIR}/server/script.json)
