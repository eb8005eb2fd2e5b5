// A small world of one pool for plan_pool(): pods that start, serve, fail and end, runs that wait,
// and writes that get lost. Time is a number that only grows.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "reconciler/pool/size.h"
#include "tests/unit/reconciler/rng.h"

namespace holdfast::reconciler::testing {

class PoolWorld {
 public:
  explicit PoolWorld(std::uint64_t seed);

  // Users, nodes and jobs do something, or nothing.
  void disturb();
  // From now on: no trouble, a template that starts, and no lost write.
  void calm_down();
  // No run waits, and those that run end soon.
  void end_all_runs();
  // So many runs wait that never end.
  void run_forever(std::int64_t runs);
  // The same, and each needs a worker of its own.
  void run_alone_forever(std::int64_t runs);
  // Some time passes: pods start, runs find their slots and end, silent workers are cut off.
  void pass(Duration time);
  // One plan, checked. Each of its writes may be lost. True: it did something.
  bool act();

  const PoolState& state() const { return state_; }
  std::vector<std::string> violations;

 private:
  struct Pod {
    PoolWorker worker;
    bool good = true;     // the template starts
    bool frozen = false;  // its node is silent
    Time bound{};         // when it gets a node
    Time ready{};         // when it is live
    Time gone{};          // when its deletion is done
  };

  void check(const PoolPlan& plan);
  void check_drains(const PoolPlan& plan);
  void apply(const PoolPlan& plan);
  void create_one();
  void look();
  void place();
  bool lost() { return lossy_ && random_.percent(15); }
  void violates(const std::string& rule);
  std::int64_t serving() const;

  Rng random_;
  bool lossy_ = true;
  bool endless_ = false;
  bool endless_alone_ = false;
  bool good_ = true;  // pods that are created from now on start
  int templates_ = 0;
  int pods_made_ = 0;
  std::map<int, Pod> pods_;  // by the number in their names
  PoolState state_;
  Time started_{};
};

}  // namespace holdfast::reconciler::testing
