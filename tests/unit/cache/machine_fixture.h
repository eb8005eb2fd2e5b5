// A machine whose server is the test. The fixture keeps the machine's actions, so that a test reads
// as a dialogue.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

#include "tests/unit/cache/machine_support.h"

namespace holdfast::cache::test {

using namespace std::chrono_literals;

class MachineTest : public ::testing::Test {
 protected:
  static ReflectorMachine::Config config(bool streaming) {
    ReflectorMachine::Config made;
    made.streaming_lists = streaming;
    return made;
  }
  explicit MachineTest(bool streaming = false) : machine(config(streaming), random) {}

  // Records the machine's actions. The last list, watch and timer count.
  const Actions& in(Actions actions) {
    said = std::move(actions);
    if (auto found = only<action::List>(said)) list = *found;
    if (auto found = only<action::Watch>(said)) watch = *found;
    if (auto found = only<action::ArmTimer>(said)) timer = *found;
    if (auto found = only<action::Compare>(said)) compare = *found;
    return said;
  }
  template <class T>
  bool says() const {
    return only<T>(said).has_value();
  }

  // The machine has listed at `version` and watches from there.
  void watching(std::uint64_t version, std::vector<ObjectPtr> items = {}) {
    in(machine.start());
    in(machine.page(list.epoch, page(version, std::move(items)), now));
    in(machine.watch_opened(watch.epoch, now));
    ASSERT_TRUE(machine.live());
  }
  void events(std::vector<kube::WatchEvent> batch) {
    in(machine.events(watch.epoch, std::move(batch), now));
  }
  void watch_ends(std::optional<Error> error = std::nullopt) {
    in(machine.watch_ended(watch.epoch, error, now));
  }
  // Runs the armed timer when it is due.
  void timer_runs() {
    now += timer.delay;
    in(machine.timer(timer.epoch, now));
  }
  // Takes the machine through back-off and look back to the watch.
  void reconnects(std::uint64_t server_version) {
    timer_runs();
    ASSERT_EQ(list.wanted, action::Wanted::kVersion);
    in(machine.page(list.epoch, page(server_version), now));
    in(machine.watch_opened(watch.epoch, now));
    ASSERT_TRUE(machine.live());
  }

  SeededRandom random{1};
  SteadyTime now{1h};
  ReflectorMachine machine;
  Actions said;
  action::List list{};
  action::Watch watch{};
  action::ArmTimer timer{};
  action::Compare compare{};
};

}  // namespace holdfast::cache::test
