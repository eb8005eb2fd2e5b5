# The rules for all writes, for the unit tests and for the simulation.
add_library(reconciler_rules STATIC reconciler/rules.cc reconciler/rules_places.cc
                                    reconciler/rules_told.cc
                                    reconciler/rules_writes.cc)
target_link_libraries(reconciler_rules PUBLIC holdfast_reconciler)
target_compile_options(reconciler_rules PRIVATE -O2)

holdfast_test(
  reconciler_test
  SOURCES
  reconciler/scenario.cc
  reconciler/transitions_test.cc
  reconciler/verdict_test.cc
  reconciler/budget_test.cc
  reconciler/creations_test.cc
  reconciler/no_pod_test.cc
  reconciler/deferral_test.cc reconciler/many_runs_edits_test.cc reconciler/many_runs_test.cc
  reconciler/job_end_test.cc
  reconciler/deadlines_test.cc
  reconciler/scheduling_test.cc
  reconciler/gated_time_test.cc
  reconciler/planned_test.cc
  reconciler/pod_times_test.cc
  reconciler/kstatus_test.cc
  reconciler/refusals_test.cc
  reconciler/requests_test.cc
  reconciler/placement_test.cc reconciler/pool_size_test.cc reconciler/pool_world.cc reconciler/pool_property_test.cc reconciler/work_test.cc reconciler/worker_test.cc
  reconciler/queue_admission_test.cc reconciler/queue_line_test.cc reconciler/queues_test.cc
  reconciler/stages_test.cc reconciler/notifications_test.cc reconciler/notify_test.cc
  reconciler/stopping_test.cc reconciler/unreadable_lists_test.cc reconciler/version_test.cc reconciler/waiting_test.cc
  reconciler/workers_limits_test.cc reconciler/workers_test.cc
  reconciler/foreign_status_test.cc
  reconciler/tidy_test.cc
  reconciler/authorship_test.cc
  reconciler/failure_policy_test.cc
  reconciler/success_policy_test.cc
  reconciler/shards_test.cc
  reconciler/heartbeat_test.cc
  reconciler/outage_test.cc
  reconciler/staleness_test.cc
  reconciler/carried_test.cc
  reconciler/random_job.cc
  reconciler/ledger.cc
  reconciler/ledger_ends.cc
  reconciler/world.cc
  reconciler/world_acts.cc
  reconciler/replica.cc
  reconciler/replica_writes.cc
  reconciler/replica_workers.cc reconciler/worker_world.cc reconciler/worker_world_acts.cc
  reconciler/property_test.cc
  LIBRARIES
  reconciler_rules)
