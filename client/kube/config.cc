#include "client/kube/config.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "client/kube/kubeconfig.h"

namespace holdfast::kube {
namespace {

constexpr const char* kServiceAccount = "/var/run/secrets/kubernetes.io/serviceaccount/";
// PEM bundles of a few dozen CAs are far smaller.
constexpr std::size_t kMaxPemBytes = 1u << 20;
constexpr std::size_t kMaxNamespaceBytes = 1u << 10;

std::string read_environment(const ConfigRequest& request, const std::string& name) {
  if (request.environment) return request.environment(name);
  const char* const value = std::getenv(name.c_str());
  return value == nullptr ? "" : value;
}

std::vector<std::string> split_paths(const std::string& list) {
  std::vector<std::string> paths;
  std::size_t begin = 0;
  while (begin <= list.size()) {
    const std::size_t end = std::min(list.find(':', begin), list.size());
    if (end > begin) paths.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return paths;
}

// Missing files of a list are skipped, as in kubectl, but at least one must exist.
Result<ClusterConfig> from_kubeconfigs(const ConfigRequest& request, const std::string& list,
                                       const std::string& named_by) {
  std::vector<Kubeconfig> files;
  for (const std::string& path : split_paths(list)) {
    const Result<std::string> text = request.files.read(path, kMaxKubeconfigBytes);
    if (!text.ok()) {
      if (text.error().code == ErrorCode::kNotFound) continue;
      return invalid("cannot read the kubeconfig " + text.error().message);
    }
    Result<Kubeconfig> file = parse_kubeconfig(path, *text);
    if (!file.ok()) return file.error();
    files.push_back(std::move(*file));
  }
  if (files.empty()) {
    return invalid(named_by + " names " + list + ", but there is no such file");
  }
  return select_context(files, request.context);
}

Result<ClusterConfig> from_service_account(const ConfigRequest& request, std::string host,
                                           const std::string& port) {
  const std::string folder = kServiceAccount;
  ClusterConfig config;
  config.origin = "in-cluster";
  if (host.find(':') != std::string::npos) host = "[" + host + "]";
  config.server = "https://" + host + ":" + port;
  config.token_file = folder + "token";
  config.ca_file = folder + "ca.crt";
  for (const std::string& path : {config.token_file, config.ca_file}) {
    const Result<std::string> content = request.files.read(path, kMaxPemBytes);
    if (content.ok()) continue;
    return invalid("this runs in a pod (KUBERNETES_SERVICE_HOST is set) but cannot read " +
                   content.error().message +
                   "; set automountServiceAccountToken: true, or give --kubeconfig");
  }
  const Result<std::string> name = request.files.read(folder + "namespace", kMaxNamespaceBytes);
  config.namespace_ = name.ok() ? name->substr(0, name->find_first_of(" \r\n")) : "";
  if (config.namespace_.empty()) config.namespace_ = "default";
  return config;
}

Result<std::string> file_or_data(const std::string& path, const std::string& data,
                                 const FileReader& files) {
  if (path.empty()) return data;
  Result<std::string> content = files.read(path, kMaxPemBytes);
  if (!content.ok()) return content.error();
  if (content->empty()) return invalid(path + " is empty");
  return content;
}

}  // namespace

Result<ClusterConfig> load_config(const ConfigRequest& request) {
  if (!request.kubeconfig.empty()) {
    return from_kubeconfigs(request, request.kubeconfig, "--kubeconfig");
  }
  const std::string list = read_environment(request, "KUBECONFIG");
  if (!split_paths(list).empty()) return from_kubeconfigs(request, list, "KUBECONFIG");
  const std::string host = read_environment(request, "KUBERNETES_SERVICE_HOST");
  const std::string port = read_environment(request, "KUBERNETES_SERVICE_PORT");
  if (request.context.empty() && !host.empty() && !port.empty()) {
    return from_service_account(request, host, port);
  }
  const std::string home = read_environment(request, "HOME");
  const std::string path = home + "/.kube/config";
  const Result<std::string> text = request.files.read(path, kMaxKubeconfigBytes);
  if (home.empty() || (!text.ok() && text.error().code == ErrorCode::kNotFound)) {
    return invalid(
        "no cluster to talk to: give --kubeconfig, set KUBECONFIG, or run in a pod with a service "
        "account; there is no ~/.kube/config either");
  }
  if (!text.ok()) return invalid("cannot read the kubeconfig " + text.error().message);
  const Result<Kubeconfig> file = parse_kubeconfig(path, *text);
  if (!file.ok()) return file.error();
  return select_context({*file}, request.context);
}

Result<http::TlsConfig> load_tls(const ClusterConfig& config, const FileReader& files) {
  const Result<std::string> ca = file_or_data(config.ca_file, config.ca_data, files);
  if (!ca.ok()) return ca.error();
  const Result<std::string> certificate =
      file_or_data(config.certificate_file, config.certificate_data, files);
  if (!certificate.ok()) return certificate.error();
  const Result<std::string> key = file_or_data(config.key_file, config.key_data, files);
  if (!key.ok()) return key.error();
  http::TlsConfig tls;
  tls.ca = *ca;
  tls.client_certificate = *certificate;
  tls.client_key = *key;
  tls.server_name = config.server_name;
  tls.insecure_skip_verify = config.insecure_skip_verify;
  return tls;
}

}  // namespace holdfast::kube
