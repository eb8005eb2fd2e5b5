// Times and durations as texts: what is read can be written and read again, and is the same.
#include <chrono>

#include "core/time.h"
#include "tests/fuzz/fuzz.h"

using namespace holdfast;
using std::chrono::seconds;

namespace {

void check_time(Time time) {
  FUZZ_REQUIRE(parse_time(format_time_nanos(time)) == time);
  FUZZ_REQUIRE(parse_time(format_time(time)) == Time(std::chrono::floor<seconds>(time)));
}

// What parse_time() gives: 1970 up to the beginning of 2100.
constexpr seconds kFirst{0}, kLast{4'102'444'800};

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
    FUZZ_REQUIRE(time->time_since_epoch() >= kFirst && time->time_since_epoch() <= kLast);
    check_time(*time);
  }
  if (const auto date = parse_http_date(text)) {
    FUZZ_REQUIRE(text.size() == 29);
    FUZZ_REQUIRE(std::chrono::floor<seconds>(*date) == *date);
    check_time(*date);
  }
  return 0;
}
