// The API server's address and our identity there. Both come from a kubeconfig, found as kubectl
// finds it, or from the service account of our pod.
//
//   Result<ClusterConfig> config = load_config({.kubeconfig = options.kubeconfig});
//   if (!config) log.error(config.error().message);
//   Result<http::TlsConfig> tls = load_tls(*config, system_files());
//
// Messages say what to do, and never hold a token, a key or a proxy's password. Any thread;
// stateless.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/http/transport.h"
#include "core/file_reader.h"
#include "core/json.h"
#include "core/result.h"

namespace holdfast::kube {

// Whether the program asks the person at the terminal, if there is one.
enum class InteractiveMode { kNever, kIfAvailable, kAlways };

// A program that gives credentials (client.authentication.k8s.io).
struct ExecConfig {
  std::string api_version;
  std::string command;  // a name to look for in PATH, or an absolute path
  std::vector<std::string> arguments;
  std::vector<std::pair<std::string, std::string>> environment;
  std::string install_hint;
  InteractiveMode mode = InteractiveMode::kIfAvailable;
  // The cluster's part of KUBERNETES_EXEC_INFO; null unless provideClusterInfo.
  Json cluster;
};

struct ClusterConfig {
  std::string origin;      // for people: "~/.kube/config, context \"kind\"", "in-cluster"
  std::string server;      // https://host:port[/path]
  std::string namespace_;  // the context's or the service account's; never empty
  std::string proxy_url;   // may hold a password; empty: from the environment

  // At most one of each pair is set. Changed files are read again (connection.h).
  std::string ca_file, ca_data;
  std::string certificate_file, certificate_data;
  std::string key_file, key_data;
  std::string server_name;
  bool insecure_skip_verify = false;

  // The file wins over the token. Neither is set together with `exec`.
  std::string token;
  std::string token_file;
  std::optional<ExecConfig> exec;

  std::vector<std::string> warnings;  // to be logged once
};

struct ConfigRequest {
  // A file, or several joined by ':'. The first file that has a name wins. Empty: KUBECONFIG, else
  // the service account in a pod, else ~/.kube/config.
  std::string kubeconfig;
  std::string context;  // empty: current-context; else only kubeconfigs are used
  const FileReader& files = system_files();
  std::function<std::string(const std::string& name)> environment;  // empty function: getenv
};

Result<ClusterConfig> load_config(const ConfigRequest& request);

// Reads the PEM texts from the files that the configuration names.
Result<http::TlsConfig> load_tls(const ClusterConfig& config, const FileReader& files);

}  // namespace holdfast::kube
