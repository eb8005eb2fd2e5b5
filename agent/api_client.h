// One request at a time to the API server, over one connection that is kept.
//
//   ApiClient client(io, {"10.96.0.1", 443, "/var/run/secrets/holdfast.dev"});
//   client.send("GET", "/apis/...", "", [](ApiReply reply) { ... });
//
// TLS 1.2 or newer; the server's certificate must be signed by `ca.crt` and name the address. Token
// and CA are read from their files for each request: they are rotated there. A thread of its own
// reads them; all else is the loop's. The handler runs in a later turn of `io`, unless abort()
// comes first. Time limits are the caller's: abort(), also where the files hang.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>

#include "agent/file_thread.h"

namespace holdfast::agent {

struct ApiServer {
  std::string host;  // an address
  int port = 443;
  std::string credentials;  // a folder
};

struct ApiReply {
  int status = 0;  // 0: none came
  std::string body;
  std::string why;  // none came, for people
};

class ApiClient {
 public:
  using Handler = std::function<void(ApiReply)>;

  ApiClient(boost::asio::io_context& io, ApiServer server);
  ~ApiClient();

  // None is under way.
  void send(const std::string& method, const std::string& path, std::string body, Handler handler);
  // Forgets the request that is under way, if any, and its connection.
  void abort();

 private:
  class Connection;
  struct Call;
  struct Credentials;

  static Credentials read_credentials(const std::string& folder);
  void go_on(Call call, const Credentials& credentials);

  boost::asio::io_context& io_;
  const ApiServer server_;
  FileThread files_;
  std::uint64_t calls_ = 0;  // begun or aborted: one that is not the last is nobody's
  std::shared_ptr<Connection> connection_;
};

}  // namespace holdfast::agent
