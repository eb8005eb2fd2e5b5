#include "operator/observe/namespace_readings.h"

#include <algorithm>
#include <utility>

namespace holdfast::observe {

NamespaceReadings::NamespaceReadings(Dependencies dependencies, std::vector<std::string> namespaces,
                                     std::function<void(const std::string&)> on_read)
    : deps_(std::move(dependencies)),
      watched_(namespaces.empty() ? std::vector<std::string>{""} : std::move(namespaces)),
      on_read_(std::move(on_read)),
      unread_(watched_.begin(), watched_.end()) {
  for (cache::Informer* informer : deps_.of_cluster) {
    informer->on_progress([this] { look(); });
  }
  for (cache::Informer* informer : deps_.of_namespaces) {
    informer->on_progress([this] { look(); });
  }
}

void NamespaceReadings::begin(std::function<void()> over) {
  stop();
  stopped_ = false;
  unread_ = {watched_.begin(), watched_.end()};
  over_ = std::move(over);
  look();
}

void NamespaceReadings::stop() {
  stopped_ = true;
  over_ = nullptr;
  patience_is_over_ = false;
  deps_.loop.cancel(std::exchange(patience_, 0));
}

bool NamespaceReadings::read(const std::string& namespace_) const {
  return unread_.count("") == 0 && unread_.count(namespace_) == 0;
}

bool NamespaceReadings::has_trouble(const std::string& watched) const {
  return std::any_of(deps_.of_namespaces.begin(), deps_.of_namespaces.end(),
                     [&](const auto* informer) { return !informer->trouble(watched).empty(); });
}

bool NamespaceReadings::is_over() {
  const auto is_fresh = [](const auto* informer) { return informer->fresh(); };
  if (!std::all_of(deps_.of_cluster.begin(), deps_.of_cluster.end(), is_fresh)) return false;
  if (unread_.size() == watched_.size()) return false;
  if (patience_ == 0) {
    patience_ = deps_.loop.call_after(kPatience, [this] {
      patience_is_over_ = true;
      look();
    });
  }
  return patience_is_over_ ||
         std::all_of(unread_.begin(), unread_.end(),
                     [this](const std::string& watched) { return has_trouble(watched); });
}

void NamespaceReadings::look() {
  if (stopped_ || (unread_.empty() && !over_)) return;
  for (const std::string& watched : std::set<std::string>(unread_)) {
    const auto is_fresh = [&](const auto* informer) { return informer->fresh(watched); };
    const auto& all = deps_.of_namespaces;
    if (!std::all_of(all.begin(), all.end(), is_fresh)) continue;
    unread_.erase(watched);
    if (over_) continue;
    deps_.log.info("a namespace that was late is read", {{"namespace", watched}});
    on_read_(watched);
  }
  if (!over_ || !is_over()) return;
  for (const std::string& watched : unread_) {
    deps_.log.warn("a namespace cannot be read yet; its jobs wait", {{"namespace", watched}});
  }
  std::exchange(over_, nullptr)();
}

}  // namespace holdfast::observe
