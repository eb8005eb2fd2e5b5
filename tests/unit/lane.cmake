holdfast_test(lane_test SOURCES lane/annotations_test.cc lane/decide_test.cc lane/durable_job_test.cc lane/prefixes_test.cc
              LIBRARIES holdfast_lane)
holdfast_test(lane_controller_test SOURCES lane/lane_controller_test.cc lane/lane_facts_test.cc lane/lane_faults_test.cc LIBRARIES operator_world)
