holdfast_test(kube_client_test
  SOURCES kube/client_call_test.cc kube/client_watch_test.cc kube/errors_test.cc kube/pages_test.cc
          kube/list_reader_test.cc kube/object_test.cc
  LIBRARIES holdfast_kube)
