holdfast_test(agent_test
  SOURCES agent/command_reports_test.cc agent/file_thread_test.cc agent/guard_deferral_test.cc
          agent/guard_progress_test.cc agent/guard_property_test.cc agent/guard_running_test.cc
          agent/guard_waiting_test.cc agent/job_record_test.cc agent/kill_rounds_test.cc
          agent/lease_keeper_test.cc agent/lease_test.cc agent/output_test.cc agent/parts_test.cc agent/pod_grace_test.cc agent/pool_leases_test.cc
          agent/serve_settings_test.cc agent/settings_test.cc agent/shepherd_test.cc agent/slots_lease_test.cc
          agent/slots_message_test.cc agent/slots_property_test.cc agent/slots_test.cc agent/work_seen_test.cc
  LIBRARIES holdfast_agent_run holdfast_agent_serve OpenSSL::SSL OpenSSL::Crypto)
