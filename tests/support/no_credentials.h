// Credentials of nobody, for a client whose server is the test.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "client/kube/client.h"
#include "core/loop.h"

namespace holdfast::test {

class NoCredentials : public kube::Credentials {
 public:
  explicit NoCredentials(Loop& loop) : loop_(loop) {}
  void authorization(std::function<void(Result<std::string>)> done) override {
    loop_.post([done = std::move(done)] { done(std::string()); });
  }
  void invalidate() override {}

 private:
  Loop& loop_;
};

}  // namespace holdfast::test
