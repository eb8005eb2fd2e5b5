// JSON as text: what is read can be written and read again, and is the same.
#include "tests/fuzz/fuzz.h"

using namespace holdfast;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text = fuzz::Input(data, size).rest();
  const Result<Json> parsed = parse_json(text);
  if (!parsed.ok()) {
    FUZZ_REQUIRE(!parsed.error().message.empty());
    return 0;
  }
  const Result<Json> again = parse_json(parsed->dump());
  FUZZ_REQUIRE(again.ok());
  FUZZ_REQUIRE(*again == *parsed);
  const Json& metadata = at(*parsed, "metadata");
  FUZZ_REQUIRE(at(metadata, "managedFields").is_null());
  FUZZ_REQUIRE(at(at(metadata, "annotations"), "kubectl.kubernetes.io/last-applied-configuration")
                   .is_null());
  for (const char* const key : {"metadata", "kind", "x", ""}) {
    static_cast<void>(string_at(*parsed, key));
    static_cast<void>(int_at(*parsed, key));
    static_cast<void>(bool_at(*parsed, key));
  }
  return 0;
}
