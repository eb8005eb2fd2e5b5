// A base for fixtures: a client and informers whose API server is the test, in manual time.
//
//   class ReachTest : public ::testing::Test, protected test::FakeClient { ... };
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "client/cache/informer.h"
#include "client/kube/client.h"
#include "core/log.h"
#include "core/random.h"
#include "tests/support/fake_transport.h"
#include "tests/support/manual_loop.h"
#include "tests/support/no_credentials.h"

namespace holdfast::test {

struct FakeClient {
  // The oldest request gets this answer.
  void answer(const std::string& body, int status = 200) {
    transport.answer(status, body);
    loop.run_ready();
  }
  void open(std::size_t stream = 0) {
    transport.open_stream(stream);
    loop.run_ready();
  }
  void lines(const std::vector<std::string>& text, std::size_t stream = 0) {
    transport.stream_lines(text, stream);
    loop.run_ready();
  }
  cache::Informer::Dependencies informers(bool streaming_lists = false) {
    cache::Informer::Dependencies of{loop, client, random, Log()};
    of.streaming_lists = streaming_lists;
    return of;
  }

  ManualLoop loop;
  SeededRandom random{1};
  FakeTransport transport{loop};
  NoCredentials credentials{loop};
  kube::Client client{{loop, transport, credentials, random, Log(), {}}};
};

// Objects that are read as metadata alone.
inline kube::Kind bare_kind(const std::string& plural) {
  return {
      .name = plural, .group_path = "/apis/x/v1", .plural = plural, .decode = kube::decode_bare};
}

}  // namespace holdfast::test
