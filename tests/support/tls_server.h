// A small HTTPS server for tests on a free loopback port. Each connection has a thread. The handler
// may break any rule of the protocol.
//
//   TlsServer server(ca.issue("server", {"IP:127.0.0.1"}));
//   server.handle([](TlsServer::Exchange& exchange) { exchange.respond(200, "{}"); });
//
// Handlers run on the connections' threads. Everything ends in the destructor.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/support/certificates.h"

namespace holdfast::test {

class TlsServer {
 public:
  struct Request {
    std::string method;
    std::string target;
    std::map<std::string, std::string> headers;  // names in lower case
    std::string body;
    int connection = 0;       // the connection's number, from 1
    std::string client_name;  // common name of the client's certificate, if any
    std::string server_name;  // SNI, if any
  };

  class Exchange {
   public:
    virtual ~Exchange() = default;
    Request request;
    // A complete answer with Content-Length. Each extra header ends with "\r\n".
    void respond(int status, const std::string& body, const std::string& headers = "");
    // A chunked answer, piece by piece.
    void begin_chunked(int status = 200, const std::string& headers = "");
    bool chunk(const std::string& data);
    void end_chunked();
    // Raw bytes. False: the client has gone.
    virtual bool write(const std::string& bytes) = 0;
    // Closes the connection without an answer.
    virtual void drop() = 0;
    // Blocks until the client has closed the connection or the server is being destroyed.
    virtual void wait_for_client_to_go() = 0;
  };
  using Handler = std::function<void(Exchange&)>;

  // `client_ca`: requires client certificates and checks them with this CA; empty: requires none.
  explicit TlsServer(const KeyPair& identity, const std::string& client_ca = "");
  ~TlsServer();

  int port() const;
  std::string url(const std::string& host = "127.0.0.1") const;
  void handle(Handler handler);
  std::vector<Request> requests() const;
  int connections() const;  // accepted so far
  int open_connections() const;
  // Resets all that are open; new ones are accepted.
  void cut_connections();
  // New connections present this certificate.
  void use_identity(const KeyPair& identity);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace holdfast::test
