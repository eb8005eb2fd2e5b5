holdfast_test(worker_pools_test SOURCES pools/pool_book_test.cc pools/pool_codec_test.cc pools/slot_line_test.cc pools/worker_leases_test.cc pools/worker_pod_test.cc LIBRARIES holdfast_pools)
