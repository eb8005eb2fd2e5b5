// The observer's journal, and the ConfigMap that keeps it. Only the replica that observes writes it,
// at most once a minute.
//
// Loop only. Destroy it when the client is idle.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "client/kube/client.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/task.h"
#include "reconciler/rescue/journal_text.h"

namespace holdfast::rescue {

class JournalStore {
 public:
  struct Dependencies {
    Loop& loop;
    kube::Client& client;
    Log log;
  };
  // `read`: the journal is what an earlier observer wrote down.
  JournalStore(const Dependencies& dependencies, std::string where, std::function<void()> read)
      : loop_(dependencies.loop),
        client_(dependencies.client),
        log_(dependencies.log),
        namespace_(std::move(where)),
        read_(std::move(read)) {}

  // Each second while this replica observes: reads, or writes what is new.
  void tick();
  // It no longer observes. Others may write from now on.
  void lapse() { read_once_ = stale_ = false; }
  // The journal goes on from what was written.
  bool ready() const { return read_once_; }
  reconciler::Journal& journal() { return journal_; }

 private:
  Task<void> load();
  Task<void> save();
  void refused(const Error& error);

  Loop& loop_;
  kube::Client& client_;
  Log log_;
  const std::string namespace_;
  const std::function<void()> read_;
  reconciler::Journal journal_;
  bool read_once_ = false;
  bool stale_ = false;  // the ConfigMap has another version than the one below
  bool busy_ = false;
  SteadyTime again_{};         // not before: the API server refused
  SteadyTime written_{};       // when its last write was sent
  std::string since_;          // when the first replica began to observe
  std::string uid_;            // of the ConfigMap
  std::uint64_t version_ = 0;  // zero: it does not exist
  std::uint64_t changes_ = 0;  // the journal's, as written
};

}  // namespace holdfast::rescue
