// Live looks whether a namespace is being deleted, which no watch of ours reports. All callers
// share one look of each namespace at a time, and its answer for kValid. So thousands of jobs that
// wait for the same thing cost one request each kValid.
//
//   NamespaceLooks looks(loop, [this](std::string ns) { return look(ns); });
//   auto task = looks.goes(ns);
//   const bool goes = co_await task;
//
// Loop only. Every look must end. Destroy this object only after all looks have ended.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/loop.h"
#include "core/task.h"

namespace holdfast::observe {

class NamespaceLooks {
 public:
  // How old an answer may be. A caller that looks again this often gets a new one each time.
  static constexpr std::chrono::seconds kValid{30};

  using Look = std::function<Task<bool>(std::string namespace_)>;
  NamespaceLooks(Loop& loop, Look look) : loop_(loop), look_(std::move(look)) {}

  Task<bool> goes(std::string namespace_);

 private:
  struct Answer {
    bool goes = false;
    SteadyTime until{};  // kValid after the look was sent
  };

  Task<void> look(std::string namespace_);

  Loop& loop_;
  const Look look_;
  std::unordered_map<std::string, Answer> answers_;
  std::unordered_map<std::string, std::vector<Callback<bool>::Done>> waiting_;
};

}  // namespace holdfast::observe
