// The controllers of a replica, in the order in which they hear of what changed. Loop only. It
// outlives the stop of each.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "client/controller/controller.h"

namespace holdfast::runtime {

class Controllers {
 public:
  void add(controller::Controller& one) { all_.push_back(&one); }

  // All of them together, as controller::Controller says. `idle` is called once all are idle.
  void begin() {
    begun_ = true;
    for (controller::Controller* one : all_) one->begin();
  }
  bool begun() const { return begun_; }
  bool stopping() const { return stopping_; }
  void stop(std::function<void()> idle) {
    stopping_ = true;
    to_stop_ = all_.size();
    const auto one_stopped = [this, idle = std::move(idle)] {
      if (--to_stop_ == 0) idle();
    };
    for (controller::Controller* one : all_) one->stop(one_stopped);
  }
  void look_at_all(int shard) {
    for (controller::Controller* one : all_) one->look_at_all(shard);
  }
  void on_progress() {
    for (controller::Controller* one : all_) one->on_progress();
  }
  void time_travelled() {
    for (controller::Controller* one : all_) one->time_travelled();
  }

 private:
  std::vector<controller::Controller*> all_;
  bool begun_ = false;
  bool stopping_ = false;
  std::size_t to_stop_ = 0;
};

}  // namespace holdfast::runtime
