holdfast_test(codec_test SOURCES jobs/agent_conflicts_test.cc jobs/codec_test.cc jobs/heartbeat_codec_test.cc jobs/known_fields_test.cc jobs/outbox_codec_test.cc jobs/pod_protobuf_test.cc jobs/stages_codec_test.cc jobs/workers_codec_test.cc
              LIBRARIES holdfast_jobs)
holdfast_test(events_test SOURCES jobs/event_pace_test.cc jobs/events_test.cc LIBRARIES holdfast_jobs)
holdfast_test(executor_test SOURCES jobs/executor_test.cc LIBRARIES holdfast_jobs)
holdfast_test(job_census_test SOURCES jobs/job_census_test.cc LIBRARIES holdfast_jobs)
holdfast_test(pod_shards_test SOURCES jobs/pod_shards_test.cc LIBRARIES holdfast_jobs)
holdfast_test(pods_of_shards_test SOURCES jobs/pods_of_shards_test.cc LIBRARIES operator_world)
holdfast_test(rest_test SOURCES jobs/rest_test.cc LIBRARIES holdfast_jobs)
holdfast_test(windows_test SOURCES jobs/windows_test.cc LIBRARIES holdfast_jobs)
