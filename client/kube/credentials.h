// The Credentials that need no program: none, a fixed token, a token in a file. Programs:
// exec_plugin.h. Loop only.
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

// The file is read again after this time, as in client-go. Kubelets renew service account tokens
// long before they expire.
inline constexpr Duration kFileMaxAge = std::chrono::minutes(1);
// The wait after a failed read, so that not every request reads the file.
inline constexpr Duration kFileRetry = std::chrono::seconds(10);
inline constexpr std::size_t kMaxTokenBytes = 256u << 10;

// "Bearer <token>". kInvalid for a text that a header cannot carry: empty, or with control
// characters.
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

// Reads the file when a request needs a token and the last one is a minute old or was refused by
// the server. The last token stays in use while the file cannot be read.
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
