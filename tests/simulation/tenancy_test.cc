// One tenant's trouble stays that tenant's: certain worlds, in which one namespace, or one kind of
// request, is in trouble, and what others must not notice of it.
#include "tests/simulation/tenancy.h"

#include "operator/membership/lease_codec.h"
#include "reconciler/shards.h"

namespace holdfast::simulation {
namespace {

// ---- A namespace that cannot be listed or watched.

struct Failure {
  const char* name;
  Fate fate;
};
class FailingNamespace : public Tenancy, public testing::WithParamInterface<Failure> {
 protected:
  void fail(const std::string& ns) {
    trouble([ns](const ApiRequest& request) {
      return is_of(request, ns) && is_collection(request) ? GetParam().fate : Fate();
    });
  }
};

TEST_P(FailingNamespace, AtTheStartHoldsUpNoOther) {
  run(minutes(3), [this] {
    fail("team-b");
    world_->cluster().image_errors(true);
    at(milliseconds(50), [this] {
      create("team-a", "a", {{"startDeadlineSeconds", 20}});
      create("team-b", "b");
    });
    at(seconds(12), [this] { EXPECT_TRUE(has_pod("team-a", "a")) << "after 12 s"; });
    // Its deadline counts once its watch has been live for 15 s.
    at(seconds(36), [this] { EXPECT_EQ(status("team-a", "a").disruptions, 1); });
    at(seconds(40), [this] {
      EXPECT_EQ(status("team-b", "b").phase, reconciler::Phase::kNone) << "it cannot be read";
      no_trouble();
    });
    // A request that hangs is given up after a minute, and the reflectors have backed off.
    at(seconds(40 + 61 + 32), [this] { EXPECT_TRUE(has_pod("team-b", "b")); });
  });
}

TEST_P(FailingNamespace, LaterStopsNoOthersClocks) {
  run(minutes(2), [this] {
    at(seconds(4), [this] {
      world_->cluster().falling_silent(1000);
      create("team-a", "silent", {{"heartbeat", {{"leaseDurationSeconds", 20}}}});
    });
    at(seconds(10), [this] {
      world_->cluster().falling_silent(0);
      world_->cluster().image_errors(true);
      create("team-a", "a", {{"startDeadlineSeconds", 20}});
      fail("team-b");
      world_->network().break_watches(-1);
    });
    at(seconds(35), [this] {
      EXPECT_EQ(status("team-a", "a").disruptions, 1);
      const reconciler::Status silent = status("team-a", "silent");
      EXPECT_EQ(silent.disruptions, 1);
      ASSERT_FALSE(silent.history.empty());
      EXPECT_EQ(silent.history[0].reason, reconciler::Reason::kHolderSilent);
    });
  });
}

INSTANTIATE_TEST_SUITE_P(All, FailingNamespace,
                         testing::Values(Failure{"With500", {.refused = 500}},
                                         Failure{"With503", {.refused = 503}},
                                         Failure{"Hanging", {.held = seconds(61), .refused = 500}}),
                         [](const auto& failure) { return failure.param.name; });

// ---- Writes that hang.

struct Hang {
  const char* name;
  bool (*hangs)(const ApiRequest&);
};
class HangingNamespace : public Tenancy, public testing::WithParamInterface<Hang> {};

TEST_P(HangingNamespace, HoldsUpNoOther) {
  run(minutes(2), [this] {
    trouble([](const ApiRequest& request) {
      const bool hangs = is_of(request, "team-b") && GetParam().hangs(request);
      return Fate{.held = hangs ? Duration(seconds(30)) : Duration::zero()};
    });
    at(seconds(5), [this] {
      for (int i = 0; i < 120; ++i) create("team-b", "b" + std::to_string(i));
    });
    at(seconds(20), [this] { create("team-a", "a"); });
    at(seconds(21), [this] { EXPECT_TRUE(has_pod("team-a", "a")); });
    at(seconds(60), [this] { kill_pod("team-a", "a"); });
    at(seconds(61), [this] {
      EXPECT_EQ(status("team-a", "a").attempt, 2);
      EXPECT_TRUE(has_pod("team-a", "a"));
    });
  });
}

INSTANTIATE_TEST_SUITE_P(All, HangingNamespace,
                         testing::Values(Hang{"Creations", is_creation},
                                         Hang{"StatusWrites", is_status_write}),
                         [](const auto& hang) { return hang.param.name; });

// Each reconcile may have one look in flight, and all of a namespace's have 16 more.
TEST_F(Tenancy, LiveLooksOfJobsWithManyRunsThatHangAreFew) {
  static constexpr int kJobs = 6;
  int looks = 0;
  run(minutes(2), [this, &looks] {
    at(seconds(5), [this] {
      for (int i = 0; i < kJobs; ++i) {
        create("team-b", "b" + std::to_string(i), {{"completions", 20}, {"parallelism", 20}});
      }
    });
    at(seconds(40), [this, &looks] {
      trouble([&looks](const ApiRequest& request) {
        const bool hangs = is_of(request, "team-b") && is_live_look(request);
        if (hangs) ++looks;
        return Fate{.held = hangs ? Duration(seconds(25)) : Duration::zero()};
      });
      for (int i = 0; i < kJobs; ++i) {
        for (const reconciler::Run& run : status("team-b", "b" + std::to_string(i)).runs) {
          EXPECT_TRUE(world_->users().delete_pod("team-b/" + run.pod_name, /*force=*/true));
        }
      }
    });
    at(seconds(49), [&looks] {
      EXPECT_GT(looks, kJobs);
      EXPECT_LE(looks, kJobs + 16);
    });
  });
}

TEST_F(Tenancy, ALiveReadThatHangsOrFailsHoldsUpNoVerdictOfAnotherRun) {
  std::string hangs, fails;
  run(minutes(2), [this, &hangs, &fails] {
    at(seconds(5), [this] { create("team-b", "big", {{"completions", 20}, {"parallelism", 20}}); });
    at(seconds(40), [this, &hangs, &fails] {
      const reconciler::Status before = status("team-b", "big");
      hangs = before.runs.at(0).pod_name;
      fails = before.runs.at(1).pod_name;
      trouble([&hangs, &fails](const ApiRequest& request) {
        if (!is_live_look(request)) return Fate();
        const bool is_slow = request.target.ends_with("/" + hangs);
        return Fate{.held = is_slow ? Duration(seconds(60)) : Duration::zero(),
                    .refused = request.target.ends_with("/" + fails) ? 500 : 0};
      });
      for (const reconciler::Run& run : before.runs) {
        EXPECT_TRUE(world_->users().delete_pod("team-b/" + run.pod_name, /*force=*/true));
      }
    });
    at(seconds(55), [this] { EXPECT_EQ(status("team-b", "big").disruptions, 18); });
  });
}

TEST_F(Tenancy, OutcomesAndCancelsWaitForNoCreationOfTheirNamespace) {
  work_lasts = seconds(20);
  run(minutes(2), [this] {
    at(seconds(4), [this] {
      for (const char* name : {"ends", "lost"}) create("team-b", name);
    });
    at(seconds(10), [this] {
      trouble([](const ApiRequest& request) {
        return Fate{.held = is_creation(request) ? Duration(seconds(30)) : Duration::zero()};
      });
      for (int i = 0; i < 120; ++i) create("team-b", "b" + std::to_string(i));
    });
    at(seconds(15), [this] { kill_pod("team-b", "lost"); });
    at(seconds(16), [this] { EXPECT_EQ(status("team-b", "lost").disruptions, 1); });
    at(seconds(31), [this] {
      EXPECT_EQ(status("team-b", "ends").phase, reconciler::Phase::kSucceeded);
      // None of it has been asked for. One whose pod is being created waits for the answer.
      world_->users().patch("team-b", "b119", {{"cancel", true}});
    });
    at(seconds(32),
       [this] { EXPECT_EQ(status("team-b", "b119").phase, reconciler::Phase::kCancelled); });
  });
}

// ---- Retry-After.

TEST_F(Tenancy, AStatusWriteWaitsAsLongAsItIsAskedTo) {
  int writes = 0;
  run(minutes(2), [this, &writes] {
    at(seconds(9), [this, &writes] {
      trouble([&writes](const ApiRequest& request) {
        const bool struck = is_status_write(request) && is_of(request, "team-a");
        if (struck) ++writes;
        return Fate{.refused = struck ? 429 : 0, .retry_after_seconds = 20};
      });
      create("team-a", "a");
      create("team-b", "b");
    });
    at(seconds(10), [this] { EXPECT_TRUE(has_pod("team-b", "b")) << "it was not asked to"; });
    at(seconds(28), [&writes] { EXPECT_EQ(writes, 1); });
    at(seconds(48), [&writes] { EXPECT_EQ(writes, 2); });
    at(seconds(48), [this] { no_trouble(); });
    at(seconds(51), [this] { EXPECT_TRUE(has_pod("team-a", "a")); });
  });
}

TEST_F(Tenancy, ALiveLookWaitsAsLongAsItIsAskedTo) {
  int looks = 0;
  run(minutes(2), [this, &looks] {
    at(seconds(9), [this] { create("team-a", "a"); });
    at(seconds(20), [this, &looks] {
      trouble([&looks](const ApiRequest& request) {
        if (is_live_look(request)) ++looks;
        return Fate{.refused = is_live_look(request) ? 429 : 0, .retry_after_seconds = 20};
      });
      kill_pod("team-a", "a");
    });
    at(seconds(39), [&looks] { EXPECT_EQ(looks, 1); });
    at(seconds(59), [&looks] { EXPECT_EQ(looks, 2); });
    at(seconds(59), [this] { no_trouble(); });
    at(seconds(62), [this] { EXPECT_EQ(status("team-a", "a").attempt, 2); });
  });
}

TEST_F(Tenancy, ARenewalWaitsAsLongAsItIsAskedToAndTheReplicaComesBack) {
  int renewals = 0;
  run(minutes(3), [this, &renewals] {
    at(seconds(9), [this] { create("team-a", "a"); });
    at(seconds(20), [this, &renewals] {
      trouble([&renewals](const ApiRequest& request) {
        const bool struck = request.method == "PUT" &&
                            request.target.find("/holdfast-member-") != std::string::npos;
        if (struck) ++renewals;
        return Fate{.refused = struck ? 429 : 0, .retry_after_seconds = 20};
      });
    });
    at(seconds(39), [&renewals] { EXPECT_EQ(renewals, 1); });
    at(seconds(59), [&renewals] { EXPECT_EQ(renewals, 2); });
    at(seconds(59), [this] { no_trouble(); });
    at(seconds(70), [this] { kill_pod("team-a", "a"); });
    at(seconds(72), [this] { EXPECT_EQ(status("team-a", "a").attempt, 2); });
  });
}

// ---- Events.

TEST_F(Tenancy, ANamespaceWhoseEventsHangHoldsUpNoOthers) {
  int reported = 0;
  run(minutes(2), [this, &reported] {
    at(seconds(9), [this] {
      create("team-a", "a");
      create("team-b", "b");
    });
    at(seconds(20), [this, &reported] {
      trouble([&reported](const ApiRequest& request) {
        const bool is_event = request.target.find("/events") != std::string::npos;
        if (is_event && is_of(request, "team-b")) ++reported;
        const bool hangs = is_event && is_of(request, "team-a");
        return Fate{.held = hangs ? Duration(seconds(30)) : Duration::zero()};
      });
      kill_pod("team-a", "a");
    });
    at(seconds(21), [this] { kill_pod("team-b", "b"); });
    at(seconds(22), [&reported] { EXPECT_EQ(reported, 1); });
  });
}

// ---- Live looks that fail, and many losses at once.

TEST_F(Tenancy, AVerdictComesWithinASecondAndAHalfOfTheEndOfItsLiveLooksTrouble) {
  static constexpr int kJobs = 40;
  run(minutes(4), [this] {
    at(seconds(9), [this] {
      for (int i = 0; i < kJobs; ++i) create("team-a", "a" + std::to_string(i));
    });
    at(seconds(30), [this] {
      trouble([](const ApiRequest& request) {
        return Fate{.refused = is_live_look(request) ? 500 : 0};
      });
      for (int i = 0; i < kJobs; ++i) kill_pod("team-a", "a" + std::to_string(i));
    });
    at(seconds(120), [this] { no_trouble(); });
    at(milliseconds(121'500), [this] {
      for (int i = 0; i < kJobs; ++i) {
        EXPECT_EQ(status("team-a", "a" + std::to_string(i)).attempt, 2) << i;
      }
    });
  });
}

// How N attempts of one namespace are lost together, and how many requests each verdict takes with
// the writes that follow it, one after the other (docs/bounds.md, "Many losses at once").
struct Losses {
  const char* name;
  int requests;
  bool of_node;
  bool heartbeat;
  Duration latency;  // of each request
};
void PrintTo(const Losses& losses, std::ostream* out) { *out << losses.name; }
class ManyLosses : public Tenancy, public testing::WithParamInterface<Losses> {
 protected:
  static constexpr int kLost = 300;
  static constexpr int kAtOnce = 16;
  static constexpr seconds kWindow{30};
  static constexpr seconds kReaction{1};
  // All agents have just renewed.
  static constexpr seconds kLostAt{55};

  static std::string name_of(int job) { return "a" + std::to_string(job); }
  int judged() {
    int count = 0;
    for (int i = 0; i < kLost; ++i) count += status("team-a", name_of(i)).disruptions > 0;
    return count;
  }
  // When the window of the last one ends.
  Duration window_end() {
    if (!GetParam().of_node) return kLostAt;
    Duration last = world_->cluster().nodes()[0].renewed;
    for (int i = 0; i < kLost; ++i) {
      const auto truth = world_->cluster().truth(status("team-a", name_of(i)).run().pod_uid);
      if (truth && !truth->renewals.empty()) last = std::max(last, truth->renewals.back());
    }
    return last + kWindow;
  }
  void lose() {
    if (!GetParam().of_node) {
      for (int i = 0; i < kLost; ++i) kill_pod("team-a", name_of(i));
      return;
    }
    world_->cluster().cordon(0);
    world_->cluster().silence(0, /*power_off=*/true);
  }
};
TEST_P(ManyLosses, AreJudgedWithinTheirBoundAndBeforeNewStarts) {
  const Losses& losses = GetParam();
  const int rounds = (kLost + kAtOnce - 1) / kAtOnce;
  const Duration bound = kReaction + rounds * losses.requests * losses.latency;
  int at_the_end = 0;
  run(minutes(3), [&] {
    Json more = {{"lostAfterSeconds", kWindow.count()}};
    if (losses.heartbeat) more["heartbeat"] = {{"leaseDurationSeconds", kWindow.count()}};
    for (int node = 1; node < 4; ++node) world_->cluster().cordon(node);
    at(seconds(9), [this, more] {
      for (int i = 0; i < kLost; ++i) create("team-a", name_of(i), more);
    });
    at(kLostAt - seconds(1),
       [&] { trouble([&](const ApiRequest&) { return Fate{.held = losses.latency}; }); });
    at(kLostAt, [&] {
      for (int node = 1; node < 4; ++node) world_->cluster().uncordon(node);
      lose();
      const Duration end = window_end();
      at(end, [&] {
        // The windows of agents end within 3 s, as their renewals came.
        if (!losses.heartbeat) {
          EXPECT_EQ(judged(), 0);
        }
        for (int i = 0; i < 1000; ++i) create("team-a", "new" + std::to_string(i));
      });
      at(end + bound, [&] { at_the_end = judged(); });
    });
  });
  EXPECT_EQ(at_the_end, kLost);
}
INSTANTIATE_TEST_SUITE_P(
    Tenancy, ManyLosses,
    testing::Values(Losses{"PodsAt25ms", 3, false, false, milliseconds(25)},
                    Losses{"PodsAt100ms", 3, false, false, milliseconds(100)},
                    Losses{"ANodeAt25ms", 8, true, false, milliseconds(25)},
                    Losses{"ANodeAt100ms", 8, true, false, milliseconds(100)},
                    Losses{"HeartbeatsAt25ms", 10, true, true, milliseconds(25)},
                    Losses{"HeartbeatsAt100ms", 10, true, true, milliseconds(100)}),
    [](const auto& tried) { return tried.param.name; });

// Each job asks for the same node and its Lease.
TEST_F(Tenancy, LossesOfOneNodeShareItsLiveReads) {
  static constexpr int kLost = 100;
  int reads = 0;
  run(minutes(4), [this, &reads] {
    for (int node = 1; node < 4; ++node) world_->cluster().cordon(node);
    at(seconds(9), [this] {
      for (int i = 0; i < kLost; ++i) create("team-a", "a" + std::to_string(i));
    });
    at(seconds(60), [this] {
      world_->cluster().cordon(0);
      world_->cluster().silence(0, /*power_off=*/true);
    });
    at(seconds(80), [this, &reads] {
      trouble([&reads](const ApiRequest& request) {
        reads += request.method == "GET" && !is_collection(request) &&
                 request.target.find("/namespaces/kube-node-lease/leases/") != std::string::npos;
        return Fate{.held = milliseconds(25)};
      });
    });
    at(seconds(60 + 30 + 1 + kLost / 100), [this, &reads] {
      int judged = 0;
      for (int i = 0; i < kLost; ++i) {
        judged += status("team-a", "a" + std::to_string(i)).disruptions == 1;
      }
      EXPECT_EQ(judged, kLost);
      EXPECT_LE(reads, kLost / 4);
      EXPECT_GE(reads, 1);
    });
  });
}

// ---- A clean stop.

// Jobs that are suspended wait for no turn to create: each waits in the queue for its status write.
TEST_F(Tenancy, AReplicaThatStopsWithADeepQueueHasNoShardAfterASecond) {
  constexpr int kMany = 10'500;
  constexpr std::size_t kDeep = 5'000;
  replicas = 2;
  shards = 32;
  by_namespace = false;
  const auto holder_of = [this](const Json& lease) {
    const std::string holder = string_at(lease["spec"], "holderIdentity");
    return holder.substr(0, holder.rfind('-'));
  };
  const auto shards_of = [this, holder_of](const std::string& replica) {
    int count = 0;
    world_->server().for_each("leases", [&](const Json& lease) {
      const std::string name = string_at(lease["metadata"], "name");
      count += name.rfind("holdfast-shard-", 0) == 0 && holder_of(lease) == replica;
    });
    return count;
  };
  // The jobs in its shards that it has not looked at yet.
  const auto queued_on = [this, holder_of](const std::string& replica) {
    std::size_t count = 0;
    world_->server().for_each("durablejobs", [&](const Json& job) {
      const std::string shard =
          membership::shard_lease_name(reconciler::shard_of(uid_of(job), shards));
      const Json& lease = *world_->server().find("leases", "holdfast-system", shard);
      const bool untouched = string_at(job["status"], "phase") != "Suspended";
      count += untouched && holder_of(lease) == replica;
    });
    return count;
  };
  run(seconds(65), [&] {
    at(seconds(60), [&] {
      EXPECT_EQ(shards_of("holdfast-0"), 16);
      EXPECT_EQ(shards_of("holdfast-1"), 16);
      trouble([](const ApiRequest& request) {
        const bool slow = is_status_write(request) || is_creation(request);
        return Fate{.held = slow ? Duration(milliseconds(300)) : Duration::zero()};
      });
      for (int i = 0; i < kMany; ++i) {
        create("team-a", "a" + std::to_string(i), {{"suspend", true}});
        if (i % 20 == 0) create("team-b", "b" + std::to_string(i));
      }
    });
    at(seconds(61), [&] {
      EXPECT_GE(queued_on("holdfast-0"), kDeep);
      EXPECT_GE(world_->replica(0)->queued(), kDeep);
      world_->stop_replica(0, minutes(30));
    });
    at(seconds(62), [&] {
      EXPECT_EQ(shards_of("holdfast-0"), 0);
      EXPECT_EQ(shards_of("holdfast-1"), 32);
    });
  });
}

}  // namespace
}  // namespace holdfast::simulation
