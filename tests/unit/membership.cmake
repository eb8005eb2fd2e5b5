holdfast_test(membership_test SOURCES membership/lease_codec_test.cc membership/membership_test.cc membership/silence_test.cc
              LIBRARIES holdfast_membership)
