#include "operator/observe/namespace_clocks.h"

namespace holdfast::observe {

NamespaceClocks::NamespaceClocks(const std::vector<std::string>& namespaces) {
  for (const std::string& name : namespaces) clocks_[name];
  if (namespaces.empty()) clocks_[""];
}

void NamespaceClocks::watch(const std::function<bool(const std::string& watched)>& is_live,
                            SteadyTime now) {
  for (auto& [watched, clock] : clocks_) clock.watch(is_live(watched), now);
}

void NamespaceClocks::proof(SteadyTime now) {
  for (auto& [watched, clock] : clocks_) clock.proof(now);
}

reconciler::LiveTime NamespaceClocks::read(const std::string& namespace_, SteadyTime now) {
  const auto of_all = clocks_.find("");
  const auto clock = of_all != clocks_.end() ? of_all : clocks_.find(namespace_);
  if (clock == clocks_.end()) return {};
  const Duration live = clock->second.read(now);
  return {live, clock->second.epoch()};
}

}  // namespace holdfast::observe
