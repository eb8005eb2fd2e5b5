// CpprestTransport against a TlsServer: a loop, a CA, a server and the transport between them.
#pragma once

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "client/http/cpprest_transport.h"
#include "tests/support/certificates.h"
#include "tests/support/loop_thread.h"
#include "tests/support/tls_server.h"

namespace holdfast::http {

using test::CertificateAuthority;
using test::eventually;
using test::kPatience;
using test::TlsServer;

// The events of a stream, written on the loop and read on the test's thread.
class StreamLog {
 public:
  StreamHandlers handlers();
  int opened_status() const;  // 0: not opened
  std::string opened_body() const;
  std::vector<std::string> lines() const;
  std::size_t line_count() const;
  bool ended() const;
  std::optional<Error> error() const;
  // Runs on the loop for each batch, before it counts as handled.
  std::function<void()> on_batch;

 private:
  mutable std::mutex mutex_;
  int status_ = 0;
  std::string body_;
  std::vector<std::string> lines_;
  int ends_ = 0;
  std::optional<Error> error_;
};

class TransportTest : public testing::Test {
 protected:
  TransportTest();
  ~TransportTest() override;

  CpprestTransport::Config config() const;
  void make(const CpprestTransport::Config& config);
  void destroy();

  Result<Response> send(Request request);
  std::future<Result<Response>> begin(Request request, CallId* id = nullptr);
  static Result<Response> get(std::future<Result<Response>>& answer);
  CallId open(StreamRequest request, StreamLog& log);
  void cancel(CallId call);
  std::size_t unfinished();

  static Request get_request(const std::string& target);

  CertificateAuthority ca_{"cluster"};
  TlsServer server_{ca_.issue("server", {"IP:127.0.0.1", "DNS:localhost"})};
  test::LoopThread loop_;
  std::unique_ptr<CpprestTransport> transport_;
};

}  // namespace holdfast::http
