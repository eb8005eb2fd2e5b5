#include "client/kube/errors.h"

#include <algorithm>

#include "client/kube/protobuf.h"
#include "core/json_view.h"
#include "core/utf8.h"

namespace holdfast::kube {
namespace {

constexpr std::size_t kMaxMessageBytes = 4096;
constexpr std::size_t kMaxQuotedBytes = 256;
constexpr std::size_t kMaxCauses = 100;

ErrorCode code_of(int status, const std::string& reason) {
  if (reason == "AlreadyExists") return ErrorCode::kAlreadyExists;
  if (status == 410 || reason == "Expired" || reason == "Gone") return ErrorCode::kGone;
  switch (status) {
    case 401:
      return ErrorCode::kUnauthorized;
    case 403:
      return ErrorCode::kForbidden;
    case 404:
      return ErrorCode::kNotFound;
    case 408:
      return ErrorCode::kTransient;
    case 409:
      return ErrorCode::kConflict;
    case 429:
      return ErrorCode::kThrottled;
    case 400:
    case 405:
    case 406:
    case 413:
    case 415:
    case 422:
      return ErrorCode::kInvalid;
    default:
      return status >= 500 ? ErrorCode::kTransient : ErrorCode::kTerminal;
  }
}

}  // namespace

Error error_from_response(const http::Response& response) {
  // A refused watch in protobuf is answered in protobuf.
  const std::optional<std::string> text = status_as_json(response.body);
  const Result<JsonDocument> parsed = JsonDocument::parse(text ? *text : response.body);
  const JsonDocument status = parsed.ok() ? *parsed : JsonDocument();
  const JsonView details = at(status, "details");
  Error error;
  error.http_status = response.status;
  error.reason = string_at(status, "reason");
  error.continue_token = string_at(at(status, "metadata"), "continue");
  error.message = clean_text(string_at(status, "message"), kMaxMessageBytes);
  error.code = code_of(response.status, error.reason);
  if (error.message.empty()) {
    // Not from the API server, perhaps from a proxy before it.
    error.message = "the server answered with HTTP status " + std::to_string(response.status);
    if (!response.body.empty()) error.message += ": " + clean_text(response.body, kMaxQuotedBytes);
  }
  error.retry_after = response.retry_after;
  const std::int64_t retry_after = int_at(details, "retryAfterSeconds");
  if (!error.retry_after && retry_after > 0 && retry_after < 86'400) {
    error.retry_after = std::chrono::seconds(retry_after);
  }
  const JsonView causes = at(details, "causes");
  if (causes.is_array()) {
    error.cause_count = static_cast<int>(causes.size());
    for (std::size_t i = 0; i < std::min(causes.size(), kMaxCauses); ++i) {
      std::string field = string_at(causes[i], "field");
      if (!field.empty()) error.cause_fields.push_back(std::move(field));
    }
  }
  // The server, or a proxy before it, lost its own answer. The write may be in etcd.
  error.maybe_applied = response.status >= 500;
  return error;
}

}  // namespace holdfast::kube
