// Events (events.k8s.io/v1) about jobs: asynchronous and bounded. Repeated Events become a series,
// and each object has a pace (event_pace.h). Reconciles never wait for Events. A failed write is
// only logged and counted. Namespaces take turns, so hanging writes of one namespace delay no
// other. Events obey the API server's Retry-After. The Event of an object's end (action Finish) is
// written at once if its pace is dropped, and before a graceful stop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "client/kube/client.h"
#include "core/log.h"
#include "core/loop.h"

namespace holdfast::events {

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
  // `reason` and `action` are CamelCase words (at most 128 bytes). `note` is for humans, cut to 1
  // KiB as the API requires. If there is room, the link of the reason follows (api/docs_link.h).
  // Warnings are for deviations from the user's request only.
  virtual void record(const ObjectReference& regarding, bool warning, const std::string& reason,
                      const std::string& action, const std::string& note) = 0;
};

// Writes Events through the client. Loop only.
class EventRecorder : public EventSink {
 public:
  // `instance` is the reporting instance (the pod's or process's name).
  EventRecorder(Loop& loop, kube::Client& client, std::string instance, Log log);
  ~EventRecorder() override;
  void record(const ObjectReference& regarding, bool warning, const std::string& reason,
              const std::string& action, const std::string& note) override;
  // How many Events were not written: over its object's pace, queue full, or refused by the server.
  std::uint64_t dropped() const;
  // Writes the waiting Events that say how objects end, for kFinishLimit at most, then stops and
  // calls `finished`. Drops all others, and later ones.
  void finish(std::function<void()> finished);
  static constexpr std::chrono::seconds kFinishLimit{3};
  // Drops waiting and later Events.
  void stop();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace holdfast::events
