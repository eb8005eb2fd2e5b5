// A pod, a node or a Lease as it is cached.
#include "core/utf8.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/kinds.h"

using namespace holdfast;

namespace {

void check_text(const JsonView& source, const char* key, const std::string& kept) {
  FUZZ_REQUIRE(kept.size() <= 512);
  FUZZ_REQUIRE(fuzz::is_utf8(kept));
  FUZZ_REQUIRE(kept == clean_text(string_at(source, key), 512));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Result<JsonDocument> json = JsonDocument::parse(fuzz::Input(data, size).rest());
  if (!json.ok()) return 0;
  static_cast<void>(kube::decode_bare(*json));
  kube::ObjectPtr object;
  try {
    object = codecs::decode_pod(*json);
  } catch (const std::exception&) {  // as decode_list() and decode_watch_line() do
    return 0;
  }
  if (!object) return 0;
  const auto& cached = static_cast<const codecs::CachedPod&>(*object);
  const reconciler::PodView& pod = cached.pod;
  FUZZ_REQUIRE(pod.name == cached.name && pod.uid == cached.uid && pod.version == cached.version);
  FUZZ_REQUIRE(pod.attempt >= 0);
  check_text(at(*json, "status"), "message", pod.message);
  for (const reconciler::ContainerView& container : pod.containers) {
    FUZZ_REQUIRE(fuzz::is_utf8(container.waiting_message));
    FUZZ_REQUIRE(!container.terminated || container.started);
    FUZZ_REQUIRE(!container.terminated || fuzz::is_utf8(container.terminated->message));
  }
  if (pod.start()) FUZZ_REQUIRE(pod.started());
  return 0;
}
