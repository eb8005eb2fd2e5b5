#include "operator/observe/namespace_looks.h"

#include <utility>

namespace holdfast::observe {

Task<bool> NamespaceLooks::goes(std::string namespace_) {
  std::erase_if(answers_, [&](const auto& one) { return one.second.until <= loop_.now(); });
  const auto known = answers_.find(namespace_);
  if (known != answers_.end()) co_return known->second.goes;
  Callback<bool> answered([&](Callback<bool>::Done done) {
    auto& waiting = waiting_[namespace_];
    waiting.push_back(std::move(done));
    if (waiting.size() == 1) spawn(look(namespace_));
  });
  const bool goes = co_await answered;
  co_return goes;
}

Task<void> NamespaceLooks::look(std::string namespace_) {
  const SteadyTime sent = loop_.now();
  auto task = look_(namespace_);
  const bool goes = co_await task;
  answers_[namespace_] = {goes, sent + kValid};
  // Last, because a caller with its answer may ask again.
  for (const auto& done : std::exchange(waiting_[namespace_], {})) {
    loop_.post([done, goes] { done(goes); });
  }
  waiting_.erase(namespace_);
}

}  // namespace holdfast::observe
