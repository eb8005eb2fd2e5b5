// A stream's bytes, in pieces of any sizes: the same lines as if they had come at once.
#include "client/http/stream_inbox.h"

#include "tests/fuzz/fuzz.h"

using namespace holdfast;
using http::StreamInbox;

namespace {

constexpr std::size_t kLongestLine = 64;

struct Outcome {
  std::vector<std::string> lines;
  bool failed = false;
  bool cut_off = false;
};

// What must come of it.
Outcome expected(std::string_view text) {
  Outcome outcome;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    outcome.failed = line.size() > kLongestLine;
    if (outcome.failed) return outcome;
    outcome.cut_off = end == text.npos;
    if (outcome.cut_off) return outcome;
    if (!line.empty()) outcome.lines.emplace_back(line);
    text.remove_prefix(end + 1);
  }
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const std::size_t early = input.byte() % 8;  // bytes that come before the head
  std::uint64_t sizes = input.number();
  const std::string text = input.rest();

  Outcome seen;
  int woken = 0;
  StreamInbox::Config config;
  config.max_line_bytes = kLongestLine;
  config.max_waiting_bytes = 16;
  config.wake = [&] { ++woken; };
  StreamInbox inbox(std::move(config));
  const auto drain = [&] {
    woken = 0;
    StreamInbox::Batch batch = inbox.take();
    for (std::any& line : batch.lines) {
      seen.lines.push_back(std::any_cast<std::string&&>(std::move(line)));
    }
    if (batch.error) seen.failed = true;
    inbox.resume();
  };
  std::size_t place = std::min(early, text.size());
  bool waits = false;
  if (place > 0)
    waits = !inbox.feed(
        text.data(), place, [&] { waits = false; }, SteadyTime{});
  FUZZ_REQUIRE(waits == (place > 0));
  inbox.set_status(200);
  while (place < text.size()) {
    if (waits) drain();
    FUZZ_REQUIRE(!waits);
    const std::size_t piece = std::min<std::size_t>(1 + sizes % 32, text.size() - place);
    sizes = sizes >> 5 | sizes << 59;
    waits = !inbox.feed(
        text.data() + place, piece, [&] { waits = false; }, SteadyTime{});
    FUZZ_REQUIRE(woken <= 1);
    place += piece;
  }
  drain();
  const Outcome right = expected(text);
  FUZZ_REQUIRE(seen.lines == right.lines);
  FUZZ_REQUIRE(seen.failed == right.failed);
  FUZZ_REQUIRE(inbox.end_error().has_value() == (right.failed || right.cut_off));
  return 0;
}
