// The Credentials that need no program: none, a fixed token, a token in a file. (For one that is
// asked of a program see exec_plugin.h.) On the loop.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "client/kube/client.h"
#include "core/file_reader.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/result.h"

namespace holdfast::kube {

// How old a file's content may be before the file is read again, as in client-go: kubelets renew
// service account tokens long before these expire.
inline constexpr Duration kFileMaxAge = std::chrono::minutes(1);
// After a failed read the file is tried again this soon; not at each request.
inline constexpr Duration kFileRetry = std::chrono::seconds(10);
inline constexpr std::size_t kMaxTokenBytes = 256u << 10;

// "Bearer <token>". kInvalid for what cannot stand in a header: nothing, control characters.
Result<std::string> bearer(std::string token, const std::string& where);

// A header that never changes; empty for none, as with a client certificate.
class FixedCredentials : public Credentials {
 public:
  FixedCredentials(Loop& loop, std::string authorization)
      : loop_(loop), authorization_(std::move(authorization)) {}
  void authorization(std::function<void(Result<std::string>)> done) override;
  void invalidate() override {}

 private:
  Loop& loop_;
  const std::string authorization_;
};

// The file is read when a token is needed and the last reading is a minute old, or was refused by
// the server. What was read stays in use while the file cannot be read.
class TokenFileCredentials : public Credentials {
 public:
  // `fallback` is a token to use until the file has been read; usually empty.
  TokenFileCredentials(Loop& loop, Log log, const FileReader& files, std::string path,
                       const std::string& fallback = "");
  void authorization(std::function<void(Result<std::string>)> done) override;
  void invalidate() override { next_read_ = SteadyTime::min(); }

 private:
  void read();

  Loop& loop_;
  const Log log_;
  const FileReader& files_;
  const std::string path_;
  Result<std::string> current_;
  SteadyTime next_read_ = SteadyTime::min();
  bool failing_ = false;
};

}  // namespace holdfast::kube
