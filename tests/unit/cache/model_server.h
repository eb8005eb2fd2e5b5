// A model of an API server with one kind: a history of writes. It answers lists and watches of any
// version as the real server does, including compaction and restored snapshots.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/random.h"
#include "tests/unit/cache/machine_support.h"

namespace holdfast::cache::test {

class ModelServer {
 public:
  using State = std::map<std::string, ObjectPtr>;  // by key

  explicit ModelServer(Random& random) : random_(random) {}

  std::uint64_t version() const { return version_; }
  std::uint64_t compacted() const { return compacted_; }

  // Creates, changes, deletes or re-creates one of a few objects.
  void write() {
    const std::string name(1, static_cast<char>('a' + random_.below(8)));
    const State now = state_at(version_);
    const auto found = now.find("ns/" + name);
    ++version_;
    if (found == now.end()) {
      history_.push_back(added(made(name, "uid-" + std::to_string(++uids_))));
    } else if (random_.below(3) == 0) {
      history_.push_back(deleted(made(name, found->second->uid)));
    } else {
      history_.push_back(modified(made(name, found->second->uid)));
    }
  }
  // Writes of other kinds also advance versions.
  void write_elsewhere() { ++version_; }
  void compact() { compacted_ = version_ - random_.below(std::min<std::uint64_t>(version_, 5)); }
  // Restores a snapshot. Later writes are gone, and their versions are used again.
  void set_back() {
    version_ -= random_.below(std::min<std::uint64_t>(version_ - 1, 20) + 1);
    std::erase_if(history_, [this](const auto& event) { return event.version > version_; });
    compacted_ = std::min(compacted_, version_);
  }

  State state_at(std::uint64_t version) const {
    State state;
    for (const kube::WatchEvent& event : history_) {
      if (event.version > version) break;
      if (event.type == kube::WatchEventType::kDeleted) {
        state.erase(event.object->key());
      } else {
        state[event.object->key()] = event.object;
      }
    }
    return state;
  }
  State state() const { return state_at(version_); }

  // The next event of a watch at `version`, if any.
  std::optional<kube::WatchEvent> next_after(std::uint64_t version) const {
    for (const kube::WatchEvent& event : history_) {
      if (event.version > version) return event;
    }
    return std::nullopt;
  }
  std::optional<kube::WatchEvent> any_up_to(std::uint64_t version) const {
    std::vector<kube::WatchEvent> sent;
    for (const kube::WatchEvent& event : history_) {
      if (event.version <= version) sent.push_back(event);
    }
    if (sent.empty()) return std::nullopt;
    return sent[random_.below(sent.size())];
  }

 private:
  ObjectPtr made(const std::string& name, const std::string& uid) {
    auto object = std::make_shared<kube::Object>();
    object->name = name;
    object->namespace_ = "ns";
    object->uid = uid;
    object->version = version_;
    // Differs in every write, even between two writes with the same version.
    object->owner_uid = "content-" + std::to_string(++writes_);
    return object;
  }

  Random& random_;
  std::uint64_t version_ = 1;
  std::uint64_t compacted_ = 0;
  int uids_ = 0;
  int writes_ = 0;
  std::vector<kube::WatchEvent> history_;
};

}  // namespace holdfast::cache::test
