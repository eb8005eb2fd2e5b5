# The simulated world around the operator: see world.h.
add_library(simulation_world STATIC
            acts.cc
            agents.cc
            cluster.cc
            gateway.cc
            guard_policies.cc
            ledger.cc
            ledger_lane.cc
            ledger_newer.cc
            ledger_owners.cc
            ledger_pods.cc
            ledger_rescue.cc
            ledger_status.cc
            ledger_times.cc
            ledger_workers.cc
            liveness.cc
            liveness_lane.cc
            liveness_queues.cc
            liveness_rescue.cc
            liveness_workers.cc
            network.cc
            others.cc
            permits.cc
            receivers.cc
            replica.cc
            run.cc
            scheduler.cc
            script.cc
            shrink.cc
            states.cc
            users.cc
            users_lane.cc
            users_newer.cc
            users_pools.cc
            warm_worker.cc
            warm_workers.cc
            world.cc
            world_acts.cc)
target_link_libraries(simulation_world PUBLIC simulation_server reconciler_rules holdfast_manager
                                              holdfast_agent_serve)
target_compile_options(simulation_world PRIVATE -O2)
set_target_properties(simulation_world PROPERTIES UNITY_BUILD ON)

add_executable(holdfast-simulate simulate.cc)
target_link_libraries(holdfast-simulate PRIVATE simulation_world)

holdfast_test(simulation_test SOURCES checker_test.cc heartbeat_checker_test.cc lane_checker_test.cc
              permits_test.cc rescue_checker_test.cc simulation_test.cc
              LIBRARIES simulation_world)
holdfast_test(tenancy_test SOURCES creations_test.cc job_shards_test.cc strays_test.cc tenancy_test.cc LIBRARIES simulation_world)
holdfast_test(agents_away_test SOURCES agents_away_test.cc LIBRARIES simulation_world)
holdfast_test(worker_returns_test SOURCES worker_returns_test.cc LIBRARIES simulation_world)
holdfast_test(queues_rest_test SOURCES queues_rest_test.cc time_to_live_test.cc
              LIBRARIES simulation_world)
target_compile_definitions(
  simulation_test PRIVATE SIMULATION_SEEDS="${CMAKE_CURRENT_SOURCE_DIR}/seeds.txt")
