#include "client/kube/credentials.h"

#include <algorithm>
#include <utility>

namespace holdfast::kube {

Result<std::string> bearer(std::string token, const std::string& where) {
  const auto is_space = [](unsigned char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
  token.erase(token.begin(), std::find_if_not(token.begin(), token.end(), is_space));
  while (!token.empty() && is_space(static_cast<unsigned char>(token.back()))) token.pop_back();
  if (token.empty()) return make_error(ErrorCode::kInvalid, where + " is empty");
  const auto is_printable = [](unsigned char c) { return c > ' ' && c < 0x7f; };
  if (!std::all_of(token.begin(), token.end(), is_printable)) {
    return make_error(ErrorCode::kInvalid, where + " holds something that is not a token");
  }
  return "Bearer " + token;
}

void FixedCredentials::authorization(std::function<void(Result<std::string>)> done) {
  loop_.post([done = std::move(done), value = authorization_] { done(value); });
}

TokenFileCredentials::TokenFileCredentials(Loop& loop, Log log, const FileReader& files,
                                           std::string path, const std::string& fallback)
    : loop_(loop),
      log_(std::move(log)),
      files_(files),
      path_(std::move(path)),
      current_(bearer(fallback, "the token")) {}

void TokenFileCredentials::authorization(std::function<void(Result<std::string>)> done) {
  if (loop_.now() >= next_read_) read();
  loop_.post([done = std::move(done), value = current_] { done(value); });
}

void TokenFileCredentials::read() {
  Result<std::string> content = files_.read(path_, kMaxTokenBytes);
  if (content.ok()) content = bearer(std::move(*content), path_);
  next_read_ = loop_.now() + (content.ok() ? kFileMaxAge : kFileRetry);
  if (content.ok()) {
    current_ = std::move(content);
    failing_ = false;
    return;
  }
  const std::string message = "cannot read the token: " + content.error().message;
  if (!std::exchange(failing_, true)) log_.warn(message, {{"kept", current_.ok() ? "yes" : "no"}});
  // A missing file may appear soon, so the caller should retry.
  if (!current_.ok()) current_ = make_error(ErrorCode::kTransient, message);
}

}  // namespace holdfast::kube
