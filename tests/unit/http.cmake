holdfast_test(http_test
  SOURCES http/endpoint_test.cc http/gzip_test.cc http/proxy_protocol_test.cc http/proxy_test.cc http/request_test.cc http/stream_inbox_test.cc
          http/stream_test.cc http/tls_test.cc http/transport_fixture.cc
  LIBRARIES holdfast_http)
