// A Client over a scripted transport and virtual time.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/kube/client.h"
#include "core/random.h"
#include "tests/support/fake_transport.h"
#include "tests/support/manual_loop.h"

namespace holdfast::kube {

// Gives a new token after each invalidate(): "token-1", "token-2", ...
class FakeCredentials : public Credentials {
 public:
  explicit FakeCredentials(Loop& loop) : loop_(loop) {}
  void authorization(std::function<void(Result<std::string>)> done) override {
    if (held) {
      waiting.push_back(std::move(done));
      return;
    }
    loop_.post([done, answer = answer()] { done(answer); });
  }
  void invalidate() override { ++invalidated; }
  Result<std::string> answer() const {
    if (error) return *error;
    return "Bearer token-" + std::to_string(invalidated + 1);
  }

  int invalidated = 0;
  bool held = false;  // answers wait in `waiting`
  std::vector<std::function<void(Result<std::string>)>> waiting;
  std::optional<Error> error;

 private:
  Loop& loop_;
};

class ClientTest : public testing::Test {
 protected:
  explicit ClientTest(double qps = 0)
      : client_({loop_, transport_, credentials_, random_, Log(),
                 RequestObserver{[this](const std::string& verb, int code, Duration) {
                   observed_.emplace_back(verb, code);
                 }},
                 "holdfast-test", qps}) {}
  // Runs before the test's own members are destroyed, because handlers refer to them.
  void TearDown() override {
    client_.shut_down();
    loop_.run_ready();
    EXPECT_TRUE(client_.idle());
  }

  // Starts the call; the result appears in the pointer when it has ended.
  template <class T>
  std::shared_ptr<std::optional<Result<T>>> start(Task<Result<T>> task) {
    auto result = std::make_shared<std::optional<Result<T>>>();
    spawn(store(std::move(task), result));
    loop_.run_ready();
    return result;
  }

  test::ManualLoop loop_;
  test::FakeTransport transport_{loop_};
  FakeCredentials credentials_{loop_};
  SeededRandom random_{1};
  std::vector<std::pair<std::string, int>> observed_;
  Client client_;

 private:
  template <class T>
  static Task<void> store(Task<Result<T>> task, std::shared_ptr<std::optional<Result<T>>> into) {
    Result<T> result = co_await task;
    into->emplace(std::move(result));
  }
};

}  // namespace holdfast::kube
