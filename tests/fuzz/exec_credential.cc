// What an exec plugin printed.
#include "client/kube/exec_plugin.h"
#include "tests/fuzz/fuzz.h"

using namespace holdfast;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string output = fuzz::Input(data, size).rest();
  const std::string version = "client.authentication.k8s.io/v1";
  const Result<kube::ExecCredential> credential = kube::parse_exec_credential(output, version);
  if (!credential.ok()) {
    FUZZ_REQUIRE(credential.error().message.rfind("its output ", 0) == 0);
    return 0;
  }
  FUZZ_REQUIRE(credential->certificate.empty() == credential->key.empty());
  FUZZ_REQUIRE(!credential->token.empty() || !credential->certificate.empty());
  return 0;
}
