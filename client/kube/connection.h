// A client with everything that it needs. Finds the cluster, builds the transport, gets and renews
// credentials. Reads the CA and the client certificate again when their files change.
//
//   auto connection = Connection::connect({loop, random, log, observer}, {.user_agent = "..."});
//   if (!connection.ok()) ...                      // the message says what to do
//   Client& client = (*connection)->client();
//   ...
//   (*connection)->shut_down();                    // then, when everything has been answered:
//   connection->reset();
//
// Loop thread only.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "client/http/cpprest_transport.h"
#include "client/kube/client.h"
#include "client/kube/config.h"
#include "client/kube/exec_plugin.h"
#include "client/kube/tls_rotation.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/random.h"
#include "core/result.h"
#include "core/task.h"

namespace holdfast::kube {

struct ConnectDependencies {
  Loop& loop;
  Random& random;
  Log log;
  RequestObserver observer;
};

struct ConnectOptions {
  std::string kubeconfig;  // as in ConfigRequest
  std::string context;
  double qps = 0;                  // 0: no limit of our own
  std::size_t max_in_flight = 64;  // ordinary requests
  std::string user_agent = "holdfast-operator";
  // How often the files of the CA and the client certificate are checked.
  Duration certificate_period = std::chrono::minutes(1);
  // Who may answer an exec plugin. None: nobody.
  std::optional<Login> login = std::nullopt;
};

class Connection {
 public:
  // Sends nothing yet. The caller's first request reports an unreachable server. An exec plugin
  // runs when the first request needs it.
  static Result<std::unique_ptr<Connection>> connect(ConnectDependencies dependencies,
                                                     const ConnectOptions& options);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Client& client() { return *client_; }
  // For logs: the source of the configuration, and the server's URL.
  const std::string& origin() const { return config_.origin; }
  const std::string& server() const { return config_.server; }
  std::uint64_t descriptors_per_connection() const {
    return transport_->descriptors_per_connection();
  }
  // Ends once there are credentials. A request does so, too, but within its own time limit, which
  // is too short for a person.
  Task<Result<>> log_in();

  // Of the context or the service account; never empty.
  const std::string& context_namespace() const { return config_.namespace_; }

  // Stops a running exec plugin and waits for its end: for a process that ends without destructors.
  // No request has credentials after it.
  void end_login();

  // Requests and watches end with kCancelled in later turns of the loop, and new ones are refused.
  // No timer is left. A second call does nothing.
  void shut_down();

 private:
  Connection(Loop& loop, Log log, ClusterConfig config);
  Result<> start(ConnectDependencies dependencies, const ConnectOptions& options);
  Result<> make_credentials(const ConnectOptions& options);
  Result<> use_files(const http::TlsConfig& tls);
  Result<> use_certificate(const std::string& certificate, const std::string& key);

  Loop& loop_;
  const Log log_;
  ClusterConfig config_;
  http::TlsConfig tls_;                 // what the transport uses
  bool certificate_from_exec_ = false;  // true: the certificate's files are not used
  std::unique_ptr<http::CpprestTransport> transport_;
  std::unique_ptr<Credentials> credentials_;
  ExecCredentials* exec_ = nullptr;  // credentials_, if it is one
  std::unique_ptr<Client> client_;
  std::unique_ptr<TlsRotation> rotation_;
};

}  // namespace holdfast::kube
