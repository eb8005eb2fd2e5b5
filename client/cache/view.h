// The cache of one kind, with its objects as their own type. Nothing outside client/ casts a cached
// object.
//
//   cache::View<CachedJob> jobs(informer);       // of a kind whose decoder makes CachedJob
//   jobs.on_change([](const auto& change) { ... change.after->job ... });
//   const std::shared_ptr<const CachedJob> job = jobs.get("media/encode-7");
//
// Loop only. The informer outlives it; a view is as cheap to copy as a pointer.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/cache/informer.h"

namespace holdfast::cache {

// See Store. The store is of a kind whose decoder makes T, and `function` gets a const T&.
template <class T, class Function>
void add_index(Store& store, const std::string& index, Function function) {
  store.add_index(index, [function](const kube::Object& object) {
    return function(static_cast<const T&>(object));
  });
}

template <class T>
class View {
 public:
  using Ptr = std::shared_ptr<const T>;

  // As cache::Change.
  struct Change {
    Ptr before;
    Ptr after;
    bool initial = false;

    const T& latest() const { return after ? *after : *before; }
  };

  View(Informer& informer) : informer_(&informer) {}

  // The functions that do not depend on the type of the objects.
  Informer* operator->() const { return informer_; }
  Informer& operator*() const { return *informer_; }

  Ptr get(const std::string& key) const { return typed(informer_->store().get(key)); }
  std::vector<Ptr> by_index(const std::string& index, const std::string& value) const {
    std::vector<Ptr> found;
    for (ObjectPtr& object : informer_->store().by_index(index, value)) {
      found.push_back(typed(std::move(object)));
    }
    return found;
  }
  // `visit` gets a const Ptr&, and must not change the store.
  template <class Visit>
  void for_each(Visit visit) const {
    informer_->store().for_each([&](const ObjectPtr& object) { visit(typed(object)); });
  }

  template <class Function>
  void add_index(const std::string& index, Function function) const {
    cache::add_index<T>(informer_->store(), index, std::move(function));
  }
  // See Informer.
  void on_change(std::function<void(const Change&)> handler) const {
    informer_->on_change([handler = std::move(handler)](const cache::Change& change) {
      handler({typed(change.before), typed(change.after), change.initial});
    });
  }

 private:
  static Ptr typed(ObjectPtr object) { return kube::as<T>(std::move(object)); }

  Informer* informer_;
};

}  // namespace holdfast::cache
