// A kubeconfig: refused with a message that says where and why, or one context of it is picked.
#include "client/kube/kubeconfig.h"
#include "client/http/endpoint.h"
#include "client/kube/base64.h"
#include "client/kube/yaml.h"
#include "tests/fuzz/fuzz.h"

using namespace holdfast;

namespace {

int depth_of(const Json& json) {
  int deepest = 0;
  if (json.is_structured()) {
    for (const Json& child : json) deepest = std::max(deepest, depth_of(child));
  }
  return deepest + 1;
}

void check_context(const kube::Kubeconfig& file, const std::string& context) {
  const Result<kube::ClusterConfig> config = kube::select_context({file, file}, context);
  if (!config.ok()) {
    FUZZ_REQUIRE(config.error().code == ErrorCode::kInvalid);
    FUZZ_REQUIRE(config.error().message.find("a/config") != std::string::npos);
    return;
  }
  FUZZ_REQUIRE(!config->server.empty() && !config->namespace_.empty());
  FUZZ_REQUIRE(config->ca_data.empty() || config->ca_file.empty());
  FUZZ_REQUIRE(config->certificate_data.empty() || config->certificate_file.empty());
  FUZZ_REQUIRE(config->key_data.empty() || config->key_file.empty());
  FUZZ_REQUIRE(!config->exec || (config->token.empty() && config->token_file.empty()));
  FUZZ_REQUIRE(!config->exec || !config->exec->command.empty());
  for (const std::string* const path :
       {&config->ca_file, &config->certificate_file, &config->key_file, &config->token_file}) {
    FUZZ_REQUIRE(path->empty() || path->front() == '/' || path->rfind("a/", 0) == 0);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text = fuzz::Input(data, size).rest();
  if (const auto bytes = kube::base64_decode(text)) {
    FUZZ_REQUIRE(kube::base64_decode(kube::base64_encode(*bytes)) == bytes);
  }
  FUZZ_REQUIRE(kube::base64_decode(kube::base64_encode(text)) == text);
  const Result<Json> yaml = kube::parse_yaml(text);
  if (yaml.ok()) {
    FUZZ_REQUIRE(depth_of(*yaml) <= kube::kMaxYamlDepth + 1);
  } else {
    FUZZ_REQUIRE(yaml.error().code == ErrorCode::kInvalid && !yaml.error().message.empty());
  }
  const Result<std::vector<Json>> manifest = kube::parse_manifest(text);
  if (manifest.ok()) {
    for (const Json& document : *manifest) {
      FUZZ_REQUIRE(!document.is_null() && depth_of(document) <= kube::kMaxYamlDepth + 1);
    }
  } else {
    FUZZ_REQUIRE(manifest.error().code == ErrorCode::kInvalid && !manifest.error().message.empty());
  }
  const Result<kube::Kubeconfig> file = kube::parse_kubeconfig("a/config", text);
  if (!file.ok()) {
    FUZZ_REQUIRE(file.error().code == ErrorCode::kInvalid);
    return 0;
  }
  FUZZ_REQUIRE(yaml.ok());
  check_context(*file, "");
  check_context(*file, "a");
  check_context(*file, "no such context");
  return 0;
}
