// Whether the guard is in the API server (codecs/guard_policies.h), as far as this replica knows:
// it reads the policies now and then. Loop only. Destroy it when the client is idle.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "client/kube/client.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/task.h"
#include "reconciler/observed.h"

namespace holdfast::observe {

class Guard {
 public:
  // From the begin of one look to the next. So an attempt may start this long after the policies
  // are gone, and none does for two short looks after they are back.
  static constexpr std::chrono::seconds kLook{15};
  // The same until the policies were read, and after a look that found a fault.
  static constexpr std::chrono::seconds kShortLook{2};
  // What was read longer ago is not known any more. So is what nobody has read so long after start().
  static constexpr std::chrono::minutes kStale{2};
  // Of one read.
  static constexpr std::chrono::seconds kLimit{5};
  // An API server that has just started may refuse for a moment what it grants.
  static constexpr int kForbiddenLooks = 3;
  // Jobs say a fault only from the third look on that finds it: each of them writes a status then,
  // and a policy that somebody replaces is back sooner. Nothing starts from the first one on.
  static constexpr int kToldLooks = 3;

  struct Dependencies {
    Loop& loop;
    kube::Client& client;
    Log log;
    std::string version;  // of this operator
    // After each look while there is a fault, if the guard is required.
    std::function<void(const std::string& fault)> on_fault;
    std::function<void()> on_news;  // view() says something else
  };
  // `required`: no new attempt starts without it.
  Guard(Dependencies dependencies, bool required)
      : deps_(std::move(dependencies)), required_(required) {}

  void start();
  void stop();

  reconciler::GuardView view() const;
  // What is wrong, as a sentence; empty: nothing, or not known yet.
  const std::string& fault() const { return fault_.what; }

 private:
  enum class Seen { kNothing, kGood, kFault };
  struct Fault {
    std::string what;  // empty: there is none, or nothing is known
    std::string remedy;
  };
  Task<void> look();
  Task<Seen> read(Fault& fault);
  void take(Seen seen, Fault fault, SteadyTime began);
  void know(Fault fault);

  const Dependencies deps_;
  const bool required_;
  bool known_ = false;
  Fault fault_;
  SteadyTime good_at_{};     // when the last good look began; at first, start()
  int good_looks_ = 0;       // in a row
  int fault_looks_ = 0;      // in a row, with those that said nothing after a fault
  int forbidden_looks_ = 0;  // in a row
  bool stopped_ = true;
  TimerId timer_ = 0;
};

}  // namespace holdfast::observe
