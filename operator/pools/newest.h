// The newest version of one object: a watch has shown it, or the answer to a request of ours. The
// answer may be newer than the watch, or older. Loop only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

namespace holdfast::pools {

template <class T>
class Newest {
 public:
  using Ptr = std::shared_ptr<const T>;

  // False: it is older than what is known. The watch is the truth, but where our own requests are
  // ahead of it. After a restore of the API server's data it shows lower versions.
  bool show(Ptr object, bool is_own) {
    if (!is_own && object_ && object->version <= own_) return false;
    if (is_own && object_ && object_->version >= object->version) return false;
    if (is_own) own_ = std::max(own_, object->version);
    object_ = std::move(object);
    return true;
  }
  // It is gone.
  void reset() { object_.reset(); }
  // After a restore, the versions that our own requests have shown may not exist.
  void forget_own() { own_ = 0; }

  // Null: none is there, as far as is known.
  const Ptr& get() const { return object_; }
  const T* operator->() const { return object_.get(); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  Ptr object_;
  std::uint64_t own_ = 0;  // the highest version that an answer has shown
};

}  // namespace holdfast::pools
