// The actions that a reflector's machine asks for, in order. The informer carries them out.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "client/cache/store_update.h"
#include "client/kube/object.h"
#include "core/log.h"
#include "core/time.h"

namespace holdfast::cache {

// Each list, watch and timer has its own. Inputs with another epoch than the current one answer
// something that was given up. The machine ignores them.
using Epoch = std::uint64_t;

namespace action {

enum class Wanted {
  kObjects,
  kVersion,   // any one object: only the list's version counts
  kMetadata,  // of every object, in one answer
};
struct List {
  Epoch epoch;
  std::string query;  // the part after '?', without selectors
  Wanted wanted = Wanted::kObjects;
};
// Compare the metadata with the store, and report through compared() how many objects lag behind.
struct Compare {
  Epoch epoch;
  std::shared_ptr<const kube::ListPage> metadata;
};
struct Watch {
  Epoch epoch;
  std::string query;
  std::chrono::seconds timeout;  // the server ends it then
};
struct CloseWatch {};  // the open one, if any
struct ArmTimer {      // replaces the timer before it
  Epoch epoch;
  Duration delay;
};
struct Replace {
  std::vector<ObjectPtr> items;
  std::uint64_t version;
  Trust trust;
};
// Object events in order, and the version up to which the store is complete after them.
struct Apply {
  std::vector<kube::WatchEvent> events;
  std::uint64_t version;
};
struct Note {  // for the log
  LogLevel level;
  std::string message;
  Log::Fields fields;
};

}  // namespace action

using Action = std::variant<action::List, action::Compare, action::Watch, action::CloseWatch,
                            action::ArmTimer, action::Replace, action::Apply, action::Note>;
using Actions = std::vector<Action>;

}  // namespace holdfast::cache
