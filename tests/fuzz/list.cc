// The body of a list. First byte: which kind.
#include "client/kube/list_reader.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/kinds.h"

using namespace holdfast;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const kube::Kind& kind = fuzz::kind_of(input.byte());
  const std::string body = input.rest();
  const Result<kube::ListPage> page = kube::decode_list(kind, body);
  if (!page.ok()) {
    FUZZ_REQUIRE(!page.error().message.empty());
    return 0;
  }
  const Result<JsonDocument> json = JsonDocument::parse(body);
  FUZZ_REQUIRE(json.ok());
  // Each item is an object or is counted.
  FUZZ_REQUIRE(page->items.size() + static_cast<std::size_t>(page->undecodable) ==
               at(*json, "items").size());
  for (const kube::ObjectPtr& object : page->items) {
    FUZZ_REQUIRE(object);
    FUZZ_REQUIRE(!object->name.empty() && !object->uid.empty());
  }
  return 0;
}
