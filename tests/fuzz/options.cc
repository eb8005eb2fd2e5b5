// Command line and environment. Lines: one argument each up to an empty one, then NAME=value each.
#include "operator/runtime/options.h"

#include "tests/fuzz/fuzz.h"

using namespace holdfast;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  std::vector<std::string> arguments;
  while (!input.empty()) {
    std::string argument = input.line();
    if (argument.empty()) break;
    arguments.push_back(std::move(argument));
  }
  runtime::Surroundings surroundings;
  surroundings.hostname = input.line();
  while (!input.empty()) {
    const std::string line = input.line();
    const std::size_t equals = std::min(line.find('='), line.size());
    surroundings.environment[line.substr(0, equals)] =
        line.substr(std::min(equals + 1, line.size()));
  }
  const Result<runtime::Options> options = runtime::parse_options(arguments, surroundings);
  if (!options.ok()) {
    FUZZ_REQUIRE(options.error().code == ErrorCode::kInvalid);
    FUZZ_REQUIRE(!options.error().message.empty());
    return 0;
  }
  if (!options->print.empty()) return 0;
  FUZZ_REQUIRE(options->workers >= 1 && options->workers <= 1000);
  FUZZ_REQUIRE(options->api.qps >= 0 && options->api.qps <= 1e308);
  FUZZ_REQUIRE(!options->replica.namespace_.empty() && !options->replica.id.empty());
  FUZZ_REQUIRE(options->replica.id.size() <= 52);
  for (const char c : options->replica.id) {
    FUZZ_REQUIRE((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-');
  }
  for (const std::string& name : options->watch_namespaces) {
    FUZZ_REQUIRE(!name.empty() && name.size() <= 63);
  }
  return 0;
}
