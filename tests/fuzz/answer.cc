// An answer that is not 2xx. Lines: status (a byte), Retry-After, Date; then the body.
#include "client/http/retry_after.h"
#include "client/kube/errors.h"
#include "tests/fuzz/fuzz.h"

using namespace holdfast;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  http::Response response;
  response.status = 300 + (input.byte() << 1 | (input.byte() & 1)) % 300;
  const std::string retry_after = input.line();
  response.retry_after = http::parse_retry_after(retry_after);
  if (response.retry_after) {
    FUZZ_REQUIRE(*response.retry_after >= Duration::zero());
    FUZZ_REQUIRE(*response.retry_after < std::chrono::hours(24 * 12));
  }
  response.date = parse_http_date(input.line());
  response.body = input.rest();
  const Error error = kube::error_from_response(response);
  FUZZ_REQUIRE(error.http_status == response.status);
  FUZZ_REQUIRE(!error.message.empty());
  FUZZ_REQUIRE(error.maybe_applied == (response.status >= 500));
  FUZZ_REQUIRE(!error.retry_after || *error.retry_after >= Duration::zero());
  FUZZ_REQUIRE(!response.retry_after || error.retry_after == response.retry_after);
  FUZZ_REQUIRE(error.cause_count >= 0);
  FUZZ_REQUIRE(error.cause_fields.size() <= static_cast<std::size_t>(error.cause_count));
  // A server that can answer again is never taken for one that said that it cannot be.
  FUZZ_REQUIRE(response.status < 500 || error.code == ErrorCode::kTransient ||
               error.code == ErrorCode::kGone || error.code == ErrorCode::kAlreadyExists);
  return 0;
}
