// JSON as text: what is read can be written and read again, and is the same.
#include "core/json_view.h"
#include "tests/fuzz/fuzz.h"

using namespace holdfast;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text = fuzz::Input(data, size).rest();
  const Result<Json> parsed = parse_json(text);
  if (!parsed.ok()) {
    FUZZ_REQUIRE(!parsed.error().message.empty());
    FUZZ_REQUIRE(!JsonDocument::parse(text).ok());
    return 0;
  }
  const Result<Json> again = parse_json(parsed->dump());
  FUZZ_REQUIRE(again.ok());
  FUZZ_REQUIRE(*again == *parsed);
  // The other reader knows the same documents, but for numbers that fit into no type of its own.
  const Result<JsonDocument> document = JsonDocument::parse(text);
  if (document.ok()) {
    const Result<Json> same = parse_json(document->text());
    FUZZ_REQUIRE(same.ok() && *same == *parsed);
    for (const char* const key : {"metadata", "kind", "x", ""}) {
      static_cast<void>(string_at(*document, key));
      static_cast<void>(int_at(*document, key));
      static_cast<void>(bool_at(*document, key));
      for (const JsonView item : at(*document, key)) static_cast<void>(item.text());
    }
  }
  for (const char* const key : {"metadata", "kind", "x", ""}) {
    static_cast<void>(string_at(*parsed, key));
    static_cast<void>(int_at(*parsed, key));
    static_cast<void>(bool_at(*parsed, key));
  }
  return 0;
}
