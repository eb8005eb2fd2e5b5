holdfast_test(job_queues_test SOURCES queues/coming_pods_test.cc queues/queue_book_test.cc queues/queue_codec_test.cc LIBRARIES holdfast_queues)
