holdfast_test(cache_test
              SOURCES cache/cache_check_test.cc cache/informer_test.cc cache/reach_test.cc cache/reflector_machine_test.cc
                      cache/reflector_property_test.cc cache/reflector_refresh_test.cc
                      cache/reflector_stream_test.cc
                      cache/reflector_trouble_test.cc cache/selected_test.cc cache/store_test.cc
              LIBRARIES holdfast_cache)
