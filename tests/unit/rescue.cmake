holdfast_test(rescue_test SOURCES rescue/observer_lease_test.cc rescue/observer_test.cc
                          rescue/rescue_codec_test.cc LIBRARIES holdfast_rescue)
