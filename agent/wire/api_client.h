// One request at a time to the API server, over one connection, which stays open.
//
//   ApiClient client(io, {"10.96.0.1", 443, "/var/run/secrets/holdfast.dev"});
//   client.send("GET", "/apis/...", "", [](ApiReply reply) { ... });
//   client.stream("/apis/...?watch=1", [](std::string_view line) { ... }, [](ApiReply end) { ...
//   });
//
// TLS 1.2 or newer. The server's certificate must be signed by `ca.crt` and must name the address.
// A thread of its own reads token and CA from their files for each request, because they are
// rotated. Everything else runs on the loop. The handler runs in a later turn of `io`, unless
// abort() comes first. The caller sets time limits with abort(), which works even if the files
// hang.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <boost/asio/io_context.hpp>

#include "agent/base/file_thread.h"
#include "core/time.h"

namespace holdfast::agent {

struct ApiServer {
  std::string host;  // an address
  int port = 443;
  std::string credentials;  // a folder
};

struct ApiReply {
  int status = 0;  // 0: no answer
  std::string body;
  std::string why;                                     // why there is no answer, for humans
  std::optional<Duration> retry_after = std::nullopt;  // from `Retry-After` in seconds
};

class ApiClient {
 public:
  using Handler = std::function<void(ApiReply)>;
  using LineHandler = std::function<void(std::string_view line)>;

  ApiClient(boost::asio::io_context& io, ApiServer server);
  ~ApiClient();

  // Only while no request is in progress.
  void send(const std::string& method, const std::string& path, std::string body, Handler handler);
  // A GET whose answer comes line by line. The last call is `ended`, with the body of an answer
  // other than 200. A line that is too long ends it. Only while no request is in progress.
  void stream(const std::string& path, LineHandler line, Handler ended);
  // Forgets the request in progress, if any, and its connection.
  void abort();

 private:
  class Connection;
  struct Call;
  struct Credentials;

  void begin(const std::string& method, const std::string& path, std::string body, Call call);
  static Credentials read_credentials(const std::string& folder);
  void go_on(Call call, const Credentials& credentials);

  boost::asio::io_context& io_;
  const ApiServer server_;
  FileThread files_;
  std::uint64_t calls_ = 0;  // begun or aborted; ignores answers to any but the last
  std::shared_ptr<Connection> connection_;
};

}  // namespace holdfast::agent
