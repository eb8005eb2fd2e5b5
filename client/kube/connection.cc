#include "client/kube/connection.h"

#include <utility>

#include "client/kube/base64.h"
#include "client/kube/credentials.h"

namespace holdfast::kube {

Result<std::unique_ptr<Connection>> Connection::connect(ConnectDependencies dependencies,
                                                        const ConnectOptions& options) {
  ConfigRequest request;
  request.kubeconfig = options.kubeconfig;
  request.context = options.context;
  Result<ClusterConfig> config = load_config(request);
  if (!config.ok()) return config.error();
  std::unique_ptr<Connection> connection(
      new Connection(dependencies.loop, dependencies.log, std::move(*config)));
  const Result<> started = connection->start(std::move(dependencies), options);
  if (!started.ok()) return started.error();
  return connection;
}

Connection::Connection(Loop& loop, Log log, ClusterConfig config)
    : loop_(loop), log_(std::move(log)), config_(std::move(config)) {}

Connection::~Connection() { shut_down(); }

Result<> Connection::start(ConnectDependencies dependencies, const ConnectOptions& options) {
  for (const std::string& warning : config_.warnings) log_.warn(warning);
  const Result<http::TlsConfig> tls = load_tls(config_, system_files());
  if (!tls.ok()) return make_error(tls.error().code, config_.origin + ": " + tls.error().message);
  tls_ = *tls;
  http::CpprestTransport::Config transport_config;
  transport_config.base_url = config_.server;
  transport_config.tls = tls_;
  transport_config.proxy_url = config_.proxy_url;
  transport_config.max_in_flight = options.max_in_flight;
  Result<std::unique_ptr<http::CpprestTransport>> transport =
      http::CpprestTransport::create(loop_, std::move(transport_config), log_);
  if (!transport.ok()) {
    return make_error(transport.error().code, config_.origin + ": " + transport.error().message);
  }
  transport_ = std::move(*transport);
  const Result<> credentials = make_credentials(options);
  if (!credentials.ok()) return credentials.error();
  client_ = std::make_unique<Client>(
      Client::Dependencies{loop_, *transport_, *credentials_, dependencies.random, log_,
                           std::move(dependencies.observer), options.user_agent, options.qps});
  rotation_ = std::make_unique<TlsRotation>(
      loop_, log_, system_files(), config_, tls_, options.certificate_period,
      [this](const http::TlsConfig& renewed) { return use_files(renewed); });
  return Unit{};
}

Result<> Connection::make_credentials(const ConnectOptions& options) {
  if (config_.exec) {
    ExecConfig exec = *config_.exec;
    const Result<> askable = check_interactive(exec, options.login);
    if (!askable.ok()) {
      return make_error(askable.error().code, config_.origin + ": " + askable.error().message);
    }
    if (!exec.cluster.is_null() && !tls_.ca.empty()) {
      exec.cluster["certificate-authority-data"] = base64_encode(tls_.ca);
    }
    auto credentials = std::make_unique<ExecCredentials>(
        ExecCredentials::Dependencies{
            loop_,
            log_,
            {},
            [this](const std::string& certificate, const std::string& key) {
              return use_certificate(certificate, key);
            },
            {},
            options.login},
        std::move(exec));
    exec_ = credentials.get();
    credentials_ = std::move(credentials);
  } else if (!config_.token_file.empty()) {
    credentials_ = std::make_unique<TokenFileCredentials>(loop_, log_, system_files(),
                                                          config_.token_file, config_.token);
  } else if (!config_.token.empty()) {
    Result<std::string> header = bearer(config_.token, config_.origin + ": the token");
    if (!header.ok()) return header.error();
    credentials_ = std::make_unique<FixedCredentials>(loop_, std::move(*header));
  } else {
    credentials_ = std::make_unique<FixedCredentials>(loop_, "");
  }
  return Unit{};
}

Task<Result<>> Connection::log_in() {
  Callback<Result<std::string>> answered(
      [this](auto done) { credentials_->authorization(std::move(done)); });
  const Result<std::string> credentials = co_await answered;
  if (!credentials.ok()) co_return credentials.error();
  co_return Unit{};
}

Result<> Connection::use_files(const http::TlsConfig& tls) {
  http::TlsConfig renewed = tls;
  if (certificate_from_exec_) {
    renewed.client_certificate = tls_.client_certificate;
    renewed.client_key = tls_.client_key;
  }
  Result<> taken = transport_->set_tls(renewed);
  if (taken.ok()) tls_ = std::move(renewed);
  return taken;
}

Result<> Connection::use_certificate(const std::string& certificate, const std::string& key) {
  http::TlsConfig renewed = tls_;
  renewed.client_certificate = certificate;
  renewed.client_key = key;
  Result<> taken = transport_->set_tls(renewed);
  if (!taken.ok()) return taken;
  tls_ = std::move(renewed);
  certificate_from_exec_ = true;
  return taken;
}

void Connection::end_login() {
  if (exec_ != nullptr) exec_->end();
}

void Connection::shut_down() {
  rotation_.reset();
  if (client_) client_->shut_down();
  if (exec_ != nullptr) exec_->shut_down();
}

}  // namespace holdfast::kube
