holdfast_test(worker_pools_test SOURCES pools/pool_book_test.cc pools/pool_codec_test.cc pools/slot_line_test.cc pools/worker_leases_test.cc pools/worker_pod_test.cc pools/worker_times_test.cc LIBRARIES holdfast_pools)
holdfast_test(pool_controller_test SOURCES pools/operator_world.cc pools/pool_controller_test.cc LIBRARIES holdfast_manager simulation_server)
