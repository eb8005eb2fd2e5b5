holdfast_test(runtime_test
              SOURCES runtime/descriptors_test.cc runtime/health_test.cc runtime/metrics_test.cc runtime/options_test.cc
                      runtime/probe_server_test.cc runtime/release_pods_test.cc
                      runtime/signals_test.cc runtime/sync_report_test.cc
              LIBRARIES holdfast_runtime)
holdfast_test(program_test SOURCES runtime/program_test.cc)
target_compile_definitions(program_test
                           PRIVATE HOLDFAST_OPERATOR="$<TARGET_FILE:holdfast-operator>")
add_dependencies(program_test holdfast-operator)
holdfast_test(manager_test SOURCES runtime/manager_test.cc LIBRARIES holdfast_manager)
