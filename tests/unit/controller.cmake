holdfast_test(queue_test SOURCES controller/queue_test.cc LIBRARIES holdfast_controller)
holdfast_test(job_census_test SOURCES controller/job_census_test.cc LIBRARIES holdfast_controller)
holdfast_test(worker_pool_test SOURCES controller/worker_pool_test.cc
              LIBRARIES holdfast_controller)
holdfast_test(shared_reads_test SOURCES controller/shared_reads_test.cc LIBRARIES holdfast_controller)
holdfast_test(executor_test SOURCES controller/executor_test.cc LIBRARIES holdfast_controller)
holdfast_test(windows_test SOURCES controller/windows_test.cc LIBRARIES holdfast_controller)
holdfast_test(membership_test SOURCES controller/membership_test.cc LIBRARIES holdfast_controller)
holdfast_test(heartbeat_records_test SOURCES controller/heartbeat_records_test.cc
              LIBRARIES holdfast_controller)
holdfast_test(job_controller_test SOURCES controller/job_controller_test.cc
              LIBRARIES holdfast_controller)
