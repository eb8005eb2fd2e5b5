holdfast_test(codec_test SOURCES codecs/codec_test.cc codecs/guard_policies_test.cc codecs/heartbeat_codec_test.cc codecs/known_fields_test.cc
                                 codecs/outbox_codec_test.cc codecs/pod_protobuf_test.cc codecs/stages_codec_test.cc
                                 codecs/workers_codec_test.cc injection/agent_conflicts_test.cc
                                 injection/pod_body_test.cc
              LIBRARIES holdfast_injection)
holdfast_test(rest_test SOURCES codecs/at_rest_test.cc LIBRARIES holdfast_jobs)
