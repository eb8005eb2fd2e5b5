holdfast_test(notify_test SOURCES notify/address_memory_test.cc notify/address_rules_test.cc notify/https_poster_test.cc notify/message_test.cc notify/notifier_test.cc notify/targets_test.cc
              LIBRARIES holdfast_notify_https)
