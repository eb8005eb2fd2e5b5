# Every crash point of every scenario: see crash_test.cc.
holdfast_test(
  crash_test
  SOURCES crash_test.cc crash_end.cc crash_point.cc crash_scenarios.cc crash_trial.cc crash_wire.cc
  LIBRARIES simulation_world)
target_compile_options(crash_test PRIVATE -O2)
# A header that was compiled with other options crashes g++.
set_target_properties(crash_test PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)
