// HTTP exchanges over cpprestsdk, and nothing else: no queue, no deadline, no loop. The .cc is the
// only file that includes cpprestsdk.
//
// send(), open() and set_tls() are called by one thread; what they are given is called on
// cpprestsdk's threads, which must not be blocked. There is one, or few, and they live until the
// process ends: cancel what is left and wait for it before main() returns.
//
// A pooled connection that the server has closed makes cpprestsdk send the request a second time by
// itself; that is why names are deterministic and writes carry a resourceVersion.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "client/http/endpoint.h"
#include "client/http/stream_inbox.h"
#include "client/http/transport.h"

namespace holdfast::http {

class CpprestWire {
 public:
  struct Config {
    Endpoint endpoint;
    std::string proxy_url;  // http://[user:password@]host:port; empty: none
    int threads = 1;        // the first of the process decides
  };
  static Result<std::unique_ptr<CpprestWire>> create(Config config, const TlsConfig& tls);
  ~CpprestWire();

  // New exchanges use it; those in progress end as they began. A failure changes nothing.
  Status set_tls(const TlsConfig& tls);

  // Ends an exchange soon, but not at once: its `done` still runs. Any thread, any time, also after
  // the end.
  using Cancel = std::function<void()>;

  // `done` runs once; unless there is an error here: the request cannot be sent as it stands.
  using Done = std::function<void(Result<Response> response)>;
  Result<Cancel> send(Request request, Done done);

  // `on_head` runs before the inbox gets its status and therefore before it gives any line; `done`
  // runs once, after everything else: without an error when the server has ended the stream.
  struct StreamCallbacks {
    std::function<void(const Response& head)> on_head;
    std::function<void(const Response& head, std::optional<Error> error)> done;
  };
  Result<Cancel> open(const StreamRequest& request, const std::shared_ptr<StreamInbox>& inbox,
                      StreamCallbacks callbacks);

 private:
  struct Clients;
  explicit CpprestWire(Config config);

  const Config config_;
  std::string server_name_;
  std::unique_ptr<Clients> clients_;
};

}  // namespace holdfast::http
