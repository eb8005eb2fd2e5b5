#include "client/kube/pages.h"

#include <algorithm>

#include "client/kube/percent_encode.h"

namespace holdfast::kube {
namespace {

// After an answer that was too large.
constexpr int kSmallerBy = 10;

}  // namespace

std::string Pages::query() const {
  std::string query = "limit=" + std::to_string(limit_);
  if (!token_.empty()) query += "&continue=" + percent_encode(token_);
  return query;
}

void Pages::took(const ListPage& page) {
  token_ = page.continue_token;
  done_ = token_.empty();
}

bool Pages::goes_on_after(const Error& error) {
  if (error.code == ErrorCode::kGone && !error.continue_token.empty()) {
    const bool is_another = error.continue_token != token_;
    token_ = error.continue_token;
    return is_another;
  }
  const bool too_large = error.http_status == 0 && error.code == ErrorCode::kTerminal;
  if (!too_large || limit_ == 1) return false;
  limit_ = std::max(1, limit_ / kSmallerBy);
  return true;
}

}  // namespace holdfast::kube
