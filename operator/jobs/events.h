// Events (events.k8s.io/v1) about jobs: asynchronous, bounded, repeated ones become a series, a
// token bucket for each object. Never awaited by a reconcile; a failure to write one is logged and
// counted, nothing else. Namespaces take turns, so that one whose writes hang holds up no other. An
// Event waits for as long as the API server asks (Retry-After).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "client/kube/client.h"
#include "core/log.h"
#include "core/loop.h"

namespace holdfast::controller {

struct ObjectReference {
  std::string api_version = "holdfast.dev/v1alpha1";
  std::string kind = "DurableJob";
  std::string namespace_;
  std::string name;
  std::string uid;
};

class EventSink {
 public:
  virtual ~EventSink() = default;
  // `reason` and `action` are CamelCase words (at most 128 bytes), `note` is for people (cut to
  // 1 KiB as the API demands). Warning events only tell of what went otherwise than asked.
  virtual void record(const ObjectReference& regarding, bool warning, const std::string& reason,
                      const std::string& action, const std::string& note) = 0;
};

// Writes them through the client. Loop only.
class EventRecorder : public EventSink {
 public:
  // `instance` is the reporting instance (the pod's or process's name).
  EventRecorder(Loop& loop, kube::Client& client, std::string instance, Log log);
  ~EventRecorder() override;
  void record(const ObjectReference& regarding, bool warning, const std::string& reason,
              const std::string& action, const std::string& note) override;
  // Of events that were not written: bucket empty, queue full or refused by the server.
  std::uint64_t dropped() const;
  // Gives up what waits. Later records are dropped.
  void stop();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace holdfast::controller
