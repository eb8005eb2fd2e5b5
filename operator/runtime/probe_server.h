// A small HTTP server for probes and metrics: GET and HEAD on a few fixed paths, nothing else.
//
// It runs on its own thread, so that it answers when the loop is stuck. Limits keep strangers
// cheap: 8 KB of headers, one request and 5 s for each connection, Limits::connections at a time. A
// new connection replaces the oldest, so slow clients cannot lock the kubelet out.
//
// Paths that begin with /debug/ answer only on loopback connections, for example `kubectl
// port-forward`.
//
//   ProbeServer server({{"/healthz", answer_at_once([&] { return health.healthz(now); })},
//                       {"/metrics", [&](auto answer) { loop.post([=] { answer(...); }); }}});
//   Status started = server.start("127.0.0.1", 8080);
//   ... server.stop();
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "core/result.h"
#include "core/time.h"

namespace holdfast::runtime {

struct ProbeAnswer {
  int status = 200;
  std::string body;
  std::string content_type = "text/plain; charset=utf-8";
};

class ProbeServer {
 public:
  // Any thread, once. Later calls and calls after stop() have no effect.
  using Answer = std::function<void(ProbeAnswer)>;
  // Runs on the server's thread and must not block it. Without an answer within Limits::answer, the
  // server answers 503.
  using Handler = std::function<void(Answer)>;

  struct Limits {
    Duration connection = std::chrono::seconds(5);  // from accept to the last byte
    Duration answer = std::chrono::seconds(3);
    std::uint32_t header_bytes = 8192;
    std::size_t connections = 64;
  };

  explicit ProbeServer(std::map<std::string, Handler> handlers)
      : ProbeServer(std::move(handlers), Limits()) {}
  ProbeServer(std::map<std::string, Handler> handlers, Limits limits);
  ~ProbeServer();  // stops
  ProbeServer(const ProbeServer&) = delete;
  ProbeServer& operator=(const ProbeServer&) = delete;

  // `host`: an IP literal; empty: all IPv6 and IPv4 addresses. Port 0: any free port. Call it once.
  Result<> start(const std::string& host, std::uint16_t port);

  // Valid after start().
  std::uint16_t port() const;
  std::string address() const;  // "127.0.0.1:8080", "[::]:8080"

  // Closes all connections and ends the thread. A second call does nothing.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// True for a loopback address, also IPv4 mapped into IPv6.
bool is_this_host(const std::string& address);

// A handler that answers at once.
ProbeServer::Handler answer_at_once(std::function<ProbeAnswer()> answer);

}  // namespace holdfast::runtime
