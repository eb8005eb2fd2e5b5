// Times and durations as texts: what is read can be written and read again, and is the same.
#include <chrono>

#include "operator/core/time.h"
#include "tests/fuzz/fuzz.h"

using namespace holdfast;
using std::chrono::seconds;

namespace {

void check_time(Time time) {
  FUZZ_REQUIRE(parse_time(format_time_nanos(time)) == time);
  FUZZ_REQUIRE(parse_time(format_time(time)) == Time(std::chrono::floor<seconds>(time)));
}

// parse_time() reads years of four digits that nanoseconds in 64 bits can tell.
constexpr seconds kFirst{-9'214'560'000}, kLast{9'214'646'399};  // 1678-01-01, 2261-12-31

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input numbers(data, size);
  const Duration duration(static_cast<std::int64_t>(numbers.number()));
  const std::string human = human_duration(duration);
  FUZZ_REQUIRE(!human.empty() && human.size() < 24);
  if (duration >= kFirst && duration <= kLast) check_time(Time(duration));

  const std::string text = fuzz::Input(data, size).rest();
  if (const auto time = parse_time(text)) {
    FUZZ_REQUIRE(text.size() >= 20);
    // An offset can lead a day out of the range that is read.
    if (time->time_since_epoch() >= kFirst && time->time_since_epoch() <= kLast) check_time(*time);
  }
  if (const auto date = parse_http_date(text)) {
    FUZZ_REQUIRE(text.size() == 29);
    FUZZ_REQUIRE(std::chrono::floor<seconds>(*date) == *date);
    check_time(*date);
  }
  return 0;
}
