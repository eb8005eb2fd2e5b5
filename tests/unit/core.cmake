holdfast_test(core_test
  SOURCES core/json_test.cc core/json_view_test.cc core/log_test.cc core/real_loop_test.cc core/server_clock_test.cc
          core/task_test.cc core/time_test.cc core/utf8_test.cc core/wakeup_test.cc core/worker_protocol_test.cc
  LIBRARIES holdfast_core)
