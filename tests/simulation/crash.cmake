# Every crash point of every scenario: see crash_test.cc.
holdfast_test(
  crash_test
  SOURCES crash_test.cc crash_end.cc crash_point.cc crash_scenarios.cc crash_trial.cc crash_wire.cc
  LIBRARIES simulation_world)
target_compile_options(crash_test PRIVATE -O2)
