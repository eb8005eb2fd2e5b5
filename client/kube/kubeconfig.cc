#include "client/kube/kubeconfig.h"

#include <utility>

#include "client/kube/base64.h"
#include "client/kube/yaml.h"

namespace holdfast::kube {
namespace {

std::string in_quotes(const std::string& text) { return "\"" + text + "\""; }

std::string resolve(const std::string& path, const std::string& kubeconfig_path) {
  if (path.empty() || path[0] == '/') return path;
  const std::size_t slash = kubeconfig_path.rfind('/');
  return slash == std::string::npos ? path : kubeconfig_path.substr(0, slash + 1) + path;
}

// Reads members of one mapping and keeps the first error.
class Fields {
 public:
  Fields(const Json& map, std::string where) : map_(map), where_(std::move(where)) {}

  bool has(const char* key) const {
    const Json& value = at(map_, key);
    // Scalars are texts here, and empty() is false for a text.
    return value.is_string() ? !value.get_ref<const std::string&>().empty() : !value.empty();
  }

  std::string text(const char* key) {
    const Json& value = at(map_, key);
    if (value.is_string()) return value.get<std::string>();
    if (!value.is_null()) fail(std::string(key) + " must be a text");
    return "";
  }

  bool flag(const char* key) {
    const std::string value = text(key);
    if (value == "true" || value == "True" || value == "TRUE") return true;
    if (!value.empty() && value != "false" && value != "False" && value != "FALSE") {
      fail(std::string(key) + " must be true or false");
    }
    return false;
  }

  std::string bytes(const char* key) {
    const std::string value = text(key);
    std::optional<std::string> decoded = base64_decode(value);
    if (!decoded) fail(std::string(key) + " is not base64");
    return decoded ? std::move(*decoded) : "";
  }

  void fail(const std::string& what) {
    if (!error_) error_ = invalid(where_ + ": " + what);
  }
  const std::optional<Error>& error() const { return error_; }
  const std::string& where() const { return where_; }

 private:
  const Json& map_;
  std::string where_;
  std::optional<Error> error_;
};

struct Entry {
  const Kubeconfig* file = nullptr;
  const Json* value = nullptr;
};

// For each name the first file's entry counts.
Entry find_entry(const std::vector<Kubeconfig>& files, const char* list, const char* member,
                 const std::string& name) {
  for (const Kubeconfig& file : files) {
    const Json& entries = at(file.root, list);
    if (!entries.is_array()) continue;
    for (const Json& entry : entries) {
      if (string_at(entry, "name") == name) return {&file, &at(entry, member)};
    }
  }
  return {};
}

std::string known_contexts(const std::vector<Kubeconfig>& files) {
  constexpr int kShown = 10;
  std::string names;
  int count = 0;
  for (const Kubeconfig& file : files) {
    const Json& entries = at(file.root, "contexts");
    if (!entries.is_array()) continue;
    for (const Json& entry : entries) {
      const std::string name = string_at(entry, "name");
      if (name.empty() || ++count > kShown) continue;
      names += (names.empty() ? "" : ", ") + name;
    }
  }
  if (count > kShown) names += " and " + std::to_string(count - kShown) + " more";
  return names.empty() ? "there is none" : "there are: " + names;
}

void read_cluster(Fields& cluster, const std::string& kubeconfig_path, ClusterConfig& config) {
  config.server = cluster.text("server");
  config.proxy_url = cluster.text("proxy-url");
  config.server_name = cluster.text("tls-server-name");
  config.insecure_skip_verify = cluster.flag("insecure-skip-tls-verify");
  config.ca_data = cluster.bytes("certificate-authority-data");
  if (config.ca_data.empty()) {
    config.ca_file = resolve(cluster.text("certificate-authority"), kubeconfig_path);
  }
  if (config.server.empty()) cluster.fail("it names no server");
  if (config.insecure_skip_verify && !(config.ca_data.empty() && config.ca_file.empty())) {
    cluster.fail(
        "insecure-skip-tls-verify together with a certificate authority makes no sense; "
        "remove insecure-skip-tls-verify");
  }
}

// The cluster's data for an exec plugin with provideClusterInfo.
Json exec_cluster(const Json& cluster, const ClusterConfig& config) {
  Json info = {{"server", config.server}};
  if (!config.server_name.empty()) info["tls-server-name"] = config.server_name;
  if (config.insecure_skip_verify) info["insecure-skip-tls-verify"] = true;
  if (!config.proxy_url.empty()) info["proxy-url"] = config.proxy_url;
  if (!config.ca_data.empty()) info["certificate-authority-data"] = base64_encode(config.ca_data);
  const Json& extensions = at(cluster, "extensions");
  if (!extensions.is_array()) return info;
  for (const Json& extension : extensions) {
    if (string_at(extension, "name") == "client.authentication.k8s.io/exec") {
      info["config"] = at(extension, "extension");
    }
  }
  return info;
}

void read_exec_environment(const Json& entries, Fields& exec, ExecConfig& config) {
  if (entries.is_null()) return;
  if (!entries.is_array()) return exec.fail("env must be a list");
  for (const Json& entry : entries) {
    const std::string name = string_at(entry, "name");
    if (name.empty() || name.find('=') != std::string::npos) {
      return exec.fail("each entry of env needs a name and a value");
    }
    config.environment.emplace_back(name, string_at(entry, "value"));
  }
}

ExecConfig read_exec(const Json& map, Fields& exec, const std::string& kubeconfig_path) {
  ExecConfig config;
  config.api_version = exec.text("apiVersion");
  config.command = exec.text("command");
  config.install_hint = exec.text("installHint");
  if (config.command.find('/') != std::string::npos) {
    config.command = resolve(config.command, kubeconfig_path);
  }
  const Json& arguments = at(map, "args");
  if (!arguments.is_null() && !arguments.is_array()) exec.fail("args must be a list");
  if (arguments.is_array()) {
    for (const Json& argument : arguments) {
      if (!argument.is_string()) exec.fail("args must be a list of texts");
      config.arguments.push_back(argument.is_string() ? argument.get<std::string>() : "");
    }
  }
  read_exec_environment(at(map, "env"), exec, config);
  const std::string mode = exec.text("interactiveMode");
  if (config.command.empty()) exec.fail("it names no command");
  if (config.api_version != "client.authentication.k8s.io/v1" &&
      config.api_version != "client.authentication.k8s.io/v1beta1") {
    exec.fail("apiVersion must be client.authentication.k8s.io/v1 or v1beta1; update the plugin");
  }
  if (mode == "Never") config.mode = InteractiveMode::kNever;
  if (mode == "Always") config.mode = InteractiveMode::kAlways;
  if (!mode.empty() && mode != "Never" && mode != "IfAvailable" && mode != "Always") {
    exec.fail("interactiveMode must be Never, IfAvailable or Always");
  }
  return config;
}

void refuse_unsupported(Fields& user) {
  if (user.has("username") || user.has("password")) {
    user.fail(
        "username and password are not supported: API servers since Kubernetes 1.19 refuse "
        "them; use a client certificate, a token or an exec plugin");
  }
  if (user.has("auth-provider")) {
    user.fail(
        "auth-provider is not supported: Kubernetes removed it in 1.26; use the exec plugin "
        "of your provider (for example gke-gcloud-auth-plugin or kubelogin)");
  }
  for (const char* const key : {"as", "as-uid", "as-groups", "as-user-extra"}) {
    if (user.has(key)) {
      user.fail(std::string(key) +
                " (impersonation) is not supported; use credentials of the user itself");
    }
  }
}

void read_user(const Json& map, const Json& cluster, Fields& user, const std::string& path,
               ClusterConfig& config) {
  refuse_unsupported(user);
  config.certificate_data = user.bytes("client-certificate-data");
  config.key_data = user.bytes("client-key-data");
  if (config.certificate_data.empty()) {
    config.certificate_file = resolve(user.text("client-certificate"), path);
  }
  if (config.key_data.empty()) config.key_file = resolve(user.text("client-key"), path);
  const bool certificate = !(config.certificate_data.empty() && config.certificate_file.empty());
  const bool key = !(config.key_data.empty() && config.key_file.empty());
  if (certificate && !key) user.fail("it has a client certificate but no client-key");
  if (key && !certificate) user.fail("it has a client key but no client-certificate");
  config.token = user.text("token");
  config.token_file = resolve(user.text("tokenFile"), path);
  if (!user.has("exec")) return;
  const Json& exec_map = at(map, "exec");
  Fields exec(exec_map, user.where() + ", exec");
  config.exec = read_exec(exec_map, exec, path);
  if (exec.error())
    return user.fail("exec: " + exec.error()->message.substr(exec.where().size() + 2));
  if (!config.token.empty() || !config.token_file.empty()) {
    user.fail("it has a token and an exec plugin; keep one of them");
  }
  Fields flags(exec_map, user.where());
  if (flags.flag("provideClusterInfo")) config.exec->cluster = exec_cluster(cluster, config);
  if (flags.error()) user.fail("exec: provideClusterInfo must be true or false");
}

void add_warnings(ClusterConfig& config) {
  if (config.insecure_skip_verify) {
    config.warnings.push_back(
        "insecure-skip-tls-verify is set: anyone on the way can read and change what is sent to " +
        config.server + "; give the cluster's certificate-authority instead");
  }
  if (config.server.rfind("http://", 0) == 0) {
    config.warnings.push_back(
        "the server is reached by plain http: anyone on the way can read and change what is sent");
  }
}

}  // namespace

Result<Kubeconfig> parse_kubeconfig(const std::string& path, const std::string& text) {
  Result<Json> root = parse_yaml(text);
  if (!root.ok()) return invalid(path + ": " + root.error().message);
  // For kubectl, an empty file is a kubeconfig without entries.
  if (root->is_null()) *root = Json::object();
  if (!root->is_object()) return invalid(path + " is not a kubeconfig: it is not a YAML mapping");
  const std::string kind = string_at(*root, "kind", "Config");
  const std::string version = string_at(*root, "apiVersion", "v1");
  if (kind != "Config" || version != "v1") {
    return invalid(path + " is not a kubeconfig: kind must be Config and apiVersion v1");
  }
  for (const char* const list : {"clusters", "contexts", "users"}) {
    const Json& entries = at(*root, list);
    if (!entries.is_null() && !entries.is_array()) {
      return invalid(path + ": " + list + " must be a list");
    }
  }
  return Kubeconfig{path, std::move(*root)};
}

Result<ClusterConfig> select_context(const std::vector<Kubeconfig>& files,
                                     const std::string& context) {
  std::string name = context;
  for (const Kubeconfig& file : files) {
    if (name.empty()) name = string_at(file.root, "current-context");
  }
  std::string paths;
  for (const Kubeconfig& file : files) paths += (paths.empty() ? "" : ", ") + file.path;
  if (name.empty()) {
    return invalid(paths + ": no current-context is set; run kubectl config use-context, " +
                   known_contexts(files));
  }
  const Entry found = find_entry(files, "contexts", "context", name);
  if (found.file == nullptr) {
    return invalid(paths + ": there is no context " + in_quotes(name) + "; " +
                   known_contexts(files));
  }
  ClusterConfig config;
  config.origin = found.file->path + ", context " + in_quotes(name);
  Fields chosen(*found.value, config.origin);
  const std::string cluster_name = chosen.text("cluster");
  const std::string user_name = chosen.text("user");
  config.namespace_ = chosen.text("namespace");
  if (config.namespace_.empty()) config.namespace_ = "default";
  if (chosen.error()) return *chosen.error();

  const Entry cluster = find_entry(files, "clusters", "cluster", cluster_name);
  if (cluster.file == nullptr) {
    return invalid(config.origin + ": there is no cluster " + in_quotes(cluster_name));
  }
  Fields cluster_reader(*cluster.value,
                        cluster.file->path + ", cluster " + in_quotes(cluster_name));
  read_cluster(cluster_reader, cluster.file->path, config);
  if (cluster_reader.error()) return *cluster_reader.error();
  add_warnings(config);
  if (user_name.empty()) return config;

  const Entry user = find_entry(files, "users", "user", user_name);
  if (user.file == nullptr) {
    return invalid(config.origin + ": there is no user " + in_quotes(user_name));
  }
  Fields user_reader(*user.value, user.file->path + ", user " + in_quotes(user_name));
  read_user(*user.value, *cluster.value, user_reader, user.file->path, config);
  if (user_reader.error()) return *user_reader.error();
  return config;
}

}  // namespace holdfast::kube
