holdfast_test(worker_pools_test SOURCES pools/newest_test.cc pools/pool_book_test.cc pools/pool_codec_test.cc pools/slot_line_test.cc pools/worker_facts_test.cc pools/worker_leases_test.cc pools/worker_pod_test.cc pools/worker_times_test.cc LIBRARIES holdfast_pools)

# A whole operator over a simulated API server.
add_library(operator_world STATIC pools/operator_world.cc)
target_link_libraries(operator_world PUBLIC holdfast_manager simulation_server holdfast_test_support GTest::gtest)
holdfast_test(pool_controller_test SOURCES pools/pool_controller_test.cc LIBRARIES operator_world)
