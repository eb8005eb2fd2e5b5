// Sends messages by HTTPS. Each target has a thread of its own, made at its first message. So no
// target can hold up another one, not even while its name is looked up.
//
// A name is looked up once for each try. The poster connects only to addresses that may be used
// (address_rules.h). SNI and Host have the name, and the certificate must carry it. Addresses that
// have failed lately come last. It follows no redirect, and reads nothing of the answer but its
// head. HTTPS_PROXY and NO_PROXY hold (client/http/endpoint.h): then the proxy is asked for those
// same addresses.
//
//   HttpsPoster poster(loop, system_files());
//   poster.post(target, message, [](Result<Answer> answer) { ... });
//   poster.stop();
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/http/endpoint.h"
#include "core/file_reader.h"
#include "core/loop.h"
#include "operator/notify/poster.h"

namespace holdfast::notify {

class HttpsPoster : public Poster {
 public:
  // The addresses of a host, as text. It may block: it runs on the target's thread.
  using LookUp = std::function<Result<std::vector<std::string>>(const std::string& host)>;
  // `look_up`: the system's, unless a test has its own.
  HttpsPoster(Loop& loop, const FileReader& files, LookUp look_up = nullptr,
              Duration timeout = kTryTimeout,
              http::Environment environment = http::process_environment);
  ~HttpsPoster() override;

  void post(const Target& target, Message message, Done done) override;

  // Ends all tries, and their `done` is dropped. Blocks while a look-up of a name is under way, as
  // long as the system's resolver may take.
  void stop();

 private:
  class Worker;
  Loop& loop_;
  const FileReader& files_;
  const LookUp look_up_;
  const Duration timeout_;
  const http::Environment environment_;
  std::map<std::string, std::unique_ptr<Worker>> workers_;  // by target
};

}  // namespace holdfast::notify
