// A small HTTP/1.1 server on 127.0.0.1 for the page: requests with small bodies, and streams of
// Server-Sent Events (https://html.spec.whatwg.org/multipage/server-sent-events.html).
//
// Handlers run on worker threads and may block. Limits keep strangers on the same machine cheap:
// 16 KB of headers, 256 KB of body, 10 s for a request, 64 connections. A new connection replaces
// the oldest one that streams nothing.
//
//   WebServer server([](const WebRequest& request) { return WebReply{200, "text/plain", "hi\n"}; });
//   const Result<> listens = server.listen(0);
//   ... server.port() ...
//   server.serve();
//   ... server.stop();
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/result.h"
#include "core/time.h"

namespace holdfast::plugin {

struct WebRequest {
  std::string method;
  std::string path;                            // decoded by nobody: the routes are plain names
  std::map<std::string, std::string> query;    // decoded
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

struct WebReply {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
  // A stream of events: asked for the next one each kTick, on a worker. Empty: nothing new. None:
  // the stream ends.
  std::function<std::optional<std::string>()> events = {};
};

class WebServer {
 public:
  using Handler = std::function<WebReply(const WebRequest&)>;

  // At most four events a second.
  static constexpr std::chrono::milliseconds kTick{250};

  explicit WebServer(Handler handler);
  ~WebServer();  // stops
  WebServer(const WebServer&) = delete;
  WebServer& operator=(const WebServer&) = delete;

  // On 127.0.0.1; port 0: any free port. Then serve(). Each once.
  Result<> listen(std::uint16_t port);
  std::uint16_t port() const;
  void serve();
  // Closes all connections, and waits for handlers that run. A second call does nothing.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A value of the query; empty: it has none.
std::string query_of(const WebRequest& request, const char* name);

// "a=b&c=d", decoded; what is no UTF-8 or malformed is left out.
std::map<std::string, std::string> parse_query(std::string_view query);

}  // namespace holdfast::plugin
