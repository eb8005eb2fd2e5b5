// A line or frame of a watch. First byte: which kind.
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/kinds.h"

using namespace holdfast;
using kube::WatchEvent;
using kube::WatchEventType;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const kube::Kind& kind = fuzz::kind_of(input.byte());
  const std::string line = input.rest();
  const WatchEvent event = kube::decode_watch_line(kind, line);
  if (event.type == WatchEventType::kError) {
    FUZZ_REQUIRE(!event.object);
    FUZZ_REQUIRE(!event.initial_events_end);
  }
  if (event.type == WatchEventType::kBookmark) FUZZ_REQUIRE(!event.object);
  if (event.object) {
    // The store goes by these.
    FUZZ_REQUIRE(event.object->version == event.version);
    FUZZ_REQUIRE(!event.object->name.empty());
    FUZZ_REQUIRE(!event.object->uid.empty());
    FUZZ_REQUIRE(!event.object->key().empty());
  }
  if (kind.protobuf && !line.starts_with('{')) return 0;
  const Result<JsonDocument> json = JsonDocument::parse(line);
  FUZZ_REQUIRE(json.ok() || event.type == WatchEventType::kError);
  if (!json.ok()) return 0;
  // The same line, without blanks.
  const WatchEvent again = kube::decode_watch_line(kind, json->text());
  FUZZ_REQUIRE(again.type == event.type);
  FUZZ_REQUIRE(again.version == event.version);
  FUZZ_REQUIRE(again.initial_events_end == event.initial_events_end);
  FUZZ_REQUIRE(again.error.code == event.error.code);
  FUZZ_REQUIRE(again.error.retry_after == event.error.retry_after);
  FUZZ_REQUIRE(!again.object == !event.object);
  FUZZ_REQUIRE(!event.object || again.object->key() == event.object->key());
  return 0;
}
