holdfast_test(codec_test SOURCES controller/agent_conflicts_test.cc controller/codec_test.cc
              controller/heartbeat_codec_test.cc controller/lease_codec_test.cc
              LIBRARIES holdfast_controller)
