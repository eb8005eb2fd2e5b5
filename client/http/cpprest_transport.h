// The Transport of a real process. It adds deadlines, limits, order and answers on the loop to the
// exchanges of cpprest_wire.h.
//
//   auto transport = CpprestTransport::create(loop, {.base_url = "https://10.0.0.1:6443"}, log);
//
// Destroy it on the loop's thread, before the loop and before main() returns. The destructor
// answers all open calls with kCancelled, and waits for the remaining I/O (2 s at most).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "client/http/transport.h"
#include "core/log.h"
#include "core/loop.h"

namespace holdfast::http {

class CpprestTransport : public Transport {
 public:
  struct Config {
    std::string base_url;  // https://host[:port][/path]
    TlsConfig tls;
    std::string proxy_url;  // http://[user:password@]host:port; empty: as the environment says
    // Ordinary requests; each has its own connection. Urgent requests may use `reserved` more, and
    // vital requests another `reserved`.
    std::size_t max_in_flight = 64;
    std::size_t reserved = 8;
    std::size_t max_waiting = 10'000;         // waiting ordinary requests; more are refused
    std::size_t max_stream_bytes = 4u << 20;  // of one stream, waiting for the loop
    // cpprestsdk's threads. One, because handing work between several costs more than it saves. The
    // first transport of the process decides.
    int threads = 1;
  };

  // kInvalid says what is wrong with the configuration and what to do.
  static Result<std::unique_ptr<CpprestTransport>> create(Loop& loop, Config config, Log log);
  ~CpprestTransport() override;

  CallId send(Request request, ResponseHandler handler) override;
  CallId open(StreamRequest request, StreamHandlers handlers) override;
  void cancel(CallId call) override;

  // New connections use it from now on. Requests in flight end as they began. Streams end with
  // kTransient, so that the caller opens them again. An unusable configuration changes nothing.
  Result<> set_tls(TlsConfig tls);

  // File descriptors of this process: more than one if a tunnel leads to the server (tunnel.h).
  std::uint64_t descriptors_per_connection() const;

  // How many exchanges cpprestsdk still works on, answered or not. For tests.
  std::size_t unfinished() const;

 private:
  struct Impl;
  explicit CpprestTransport(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace holdfast::http
