// HTTP exchanges over cpprestsdk: no queue, no deadline, no loop. Only the .cc includes cpprestsdk.
//
// One thread calls send(), open() and set_tls(). Callbacks run on cpprestsdk's threads and must not
// block. These few threads live until the process ends: before main() returns, cancel open
// exchanges and wait for their end.
//
// If the server has closed a pooled connection, cpprestsdk itself sends the request a second time.
// So names are deterministic, and writes carry a resourceVersion.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "client/http/endpoint.h"
#include "client/http/stream_inbox.h"
#include "client/http/transport.h"
#include "client/http/tunnel.h"

namespace holdfast::http {

class CpprestWire {
 public:
  struct Config {
    Endpoint endpoint;
    std::string proxy_url;  // see parse_proxy(); empty: none
    int threads = 1;        // the first CpprestWire of the process decides
  };
  static Result<std::unique_ptr<CpprestWire>> create(Config config, const TlsConfig& tls);
  ~CpprestWire();

  // New exchanges use it. Exchanges in progress end as they began. A failure changes nothing.
  Result<> set_tls(const TlsConfig& tls);

  // New exchanges use new connections. Those in progress end as they began.
  void drop_idle_connections();

  std::uint64_t descriptors_per_connection() const { return tunnel_ ? Tunnel::kPerConnection : 1; }

  // Ends an exchange soon; its `done` still runs. Any thread, any time, also after the end.
  using Cancel = std::function<void()>;

  // `done` runs once. An error here means that the request cannot be sent; then `done` never runs.
  using Done = std::function<void(Result<Response> response)>;
  Result<Cancel> send(Request request, Done done);

  // `on_head` runs before the inbox gets its status, so before it gives any line. `done` runs once,
  // after everything else. It has no error if the server ended the stream.
  struct StreamCallbacks {
    std::function<void(const Response& head)> on_head;
    std::function<void(const Response& head, std::optional<Error> error)> done;
  };
  Result<Cancel> open(const StreamRequest& request, const std::shared_ptr<StreamInbox>& inbox,
                      StreamCallbacks callbacks);

 private:
  struct Clients;
  explicit CpprestWire(Config config);
  Result<> make_clients(const TlsConfig& tls);

  std::string host_header() const;  // empty: the URL's
  Result<> open_tunnel(const TlsConfig& tls);

  const Config config_;
  std::unique_ptr<Tunnel> tunnel_;  // null: cpprestsdk goes the way by itself
  TlsConfig tls_;
  std::unique_ptr<Clients> clients_;
};

}  // namespace holdfast::http
