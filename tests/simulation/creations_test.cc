// Creations of pods that take long: a slow admission webhook of one namespace.
#include "tests/simulation/tenancy.h"

namespace holdfast::simulation {
namespace {

class SlowCreations : public Tenancy {
 protected:
  void hold(const std::string& ns, Duration held) {
    trouble([ns, held](const ApiRequest& request) {
      const bool struck = is_of(request, ns) && is_creation(request);
      return Fate{.held = struck ? held : Duration::zero()};
    });
  }
  void expect_first_attempt_runs(const std::string& ns, const std::string& name) {
    EXPECT_TRUE(has_pod(ns, name));
    EXPECT_EQ(status(ns, name).phase, reconciler::Phase::kRunning);
    EXPECT_EQ(status(ns, name).attempt, 1);
  }
};

TEST_F(SlowCreations, AJobWhoseCreationsTakeHalfAMinuteRuns) {
  run(minutes(2), [this] {
    hold("team-b", seconds(30));
    at(seconds(5), [this] { create("team-b", "b"); });
    // The first one is given up after 10 s, and 5 s later the next one has the time that it needs.
    at(seconds(51), [this] { expect_first_attempt_runs("team-b", "b"); });
  });
}

TEST_F(SlowCreations, ACreationThatIsLostOnItsWayIsRepeatedAfterTenSeconds) {
  run(minutes(3), [this] {
    hold("team-b", minutes(20));
    at(seconds(5), [this] { create("team-b", "b"); });
    at(seconds(6), [this] { no_trouble(); });
    at(seconds(21), [this] { expect_first_attempt_runs("team-b", "b"); });
  });
}

// The API server answers within a minute, whatever its webhooks do.
TEST_F(SlowCreations, ALaterOneIsRepeatedAfterAMinute) {
  run(minutes(3), [this] {
    hold("team-b", minutes(20));
    at(seconds(5), [this] { create("team-b", "b"); });
    at(seconds(30), [this] { no_trouble(); });
    at(seconds(84), [this] { EXPECT_FALSE(has_pod("team-b", "b")); });
    at(seconds(97), [this] { expect_first_attempt_runs("team-b", "b"); });
  });
}

// What the other replica then does with the attempt must not meet its pod.
TEST_F(SlowCreations, ACreationIsGivenUpWithTheRightToAct) {
  replicas = 2;
  run(minutes(2), [this] {
    at(seconds(9), [this] { hold("team-b", seconds(30)); });
    at(seconds(10), [this] { create("team-b", "b"); });
    // The second one is under way for a second or two.
    at(seconds(27), [this] {
      for (int replica : {0, 1}) world_->network().cut(replica, Network::Cut::kSilent);
    });
    at(seconds(58), [this] { EXPECT_FALSE(has_pod("team-b", "b")) << "30 s after it was asked"; });
    at(seconds(59), [this] {
      for (int replica : {0, 1}) world_->network().cut(replica, Network::Cut::kNone);
      no_trouble();
    });
  });
}

// A replica that comes takes its shards over; their other jobs do not wait for a creation in one,
// and the attempt that it is of is not lost.
// Of 40 intents 16 are under way when the user cancels. The others wait in line, and come to
// nothing.
TEST_F(SlowCreations, ThoseThatWaitAreNotSentOnceTheirAttemptsHaveEnded) {
  int sent = 0;
  run(minutes(3), [this, &sent] {
    trouble([&sent](const ApiRequest& request) {
      if (is_creation(request)) ++sent;
      return Fate{.held = is_creation(request) ? Duration(seconds(8)) : Duration::zero()};
    });
    at(seconds(5), [this] { create("team-b", "b", {{"completions", 40}, {"parallelism", 40}}); });
    at(seconds(8), [this] { world_->users().patch("team-b", "b", {{"cancel", true}}); });
    at(seconds(100), [this, &sent] {
      EXPECT_EQ(status("team-b", "b").phase, reconciler::Phase::kCancelled);
      EXPECT_GT(sent, 0);
      EXPECT_LE(sent, 16);
    });
  });
}

TEST_F(SlowCreations, HoldUpNoHandOver) {
  replicas = 2;
  shards = 2;
  by_namespace = false;
  static constexpr int kJobs = 6;
  const auto name = [](const char* kind, int i) { return kind + std::to_string(i); };
  run(minutes(4), [this, name] {
    at(seconds(1), [this] { world_->stop_replica(1, seconds(59)); });
    at(seconds(40), [this, name] {
      hold("team-b", seconds(30));
      for (int i = 0; i < kJobs; ++i) create("team-a", name("a", i));
    });
    at(seconds(58), [this, name] {
      for (int i = 0; i < kJobs; ++i) create("team-b", name("b", i));
    });
    at(seconds(67), [this, name] {
      EXPECT_NE(world_->server().find("leases", "holdfast-system", "holdfast-shard-0"), nullptr);
      for (int i = 0; i < kJobs; ++i) kill_pod("team-a", name("a", i));
    });
    at(seconds(69), [this, name] {
      for (int i = 0; i < kJobs; ++i) EXPECT_EQ(status("team-a", name("a", i)).attempt, 2) << i;
    });
    at(seconds(110), [this, name] {
      for (int i = 0; i < kJobs; ++i) expect_first_attempt_runs("team-b", name("b", i));
    });
  });
}

// Nobody puts the refusal on record. Its shard goes to the other replica all the same.
TEST_F(SlowCreations, ThatAreRefusedOnceTheirJobIsGoneKeepNoShard) {
  replicas = 2;
  shards = 2;
  by_namespace = false;
  static constexpr int kJobs = 6;
  run(minutes(3), [this] {
    at(seconds(1), [this] { world_->stop_replica(1, seconds(59)); });
    at(seconds(40), [this] {
      trouble([](const ApiRequest& request) {
        return is_creation(request) ? Fate{.held = seconds(8), .refused = 403} : Fate{};
      });
      for (int i = 0; i < kJobs; ++i) create("team-b", "b" + std::to_string(i));
    });
    at(seconds(42), [this] {
      for (int i = 0; i < kJobs; ++i) {
        world_->users().delete_job("team-b/b" + std::to_string(i), 0, /*recreate=*/false);
      }
    });
    at(seconds(58), [this] { no_trouble(); });
    at(seconds(100), [this] {
      const auto holder = [this](const char* name) {
        const Json* const lease = world_->server().find("leases", "holdfast-system", name);
        return lease ? string_at(holdfast::at(*lease, "spec"), "holderIdentity") : "";
      };
      EXPECT_NE(holder("holdfast-shard-0"), holder("holdfast-shard-1"));
      EXPECT_NE(holder("holdfast-shard-0"), "");
      EXPECT_NE(holder("holdfast-shard-1"), "");
    });
  });
}

// A clean stop leaves no intent behind that nobody will carry out: an upgrade costs no attempt.
TEST_F(SlowCreations, ThatAreUnderWayWhenTheProcessIsToldToStopCostNoAttempt) {
  replicas = 2;
  run(minutes(3), [this] {
    at(seconds(19), [this] { hold("team-b", seconds(8)); });
    at(seconds(20), [this] {
      create("team-b", "one");
      create("team-b", "many", {{"completions", 40}, {"parallelism", 40}});
    });
    at(milliseconds(20500), [this] {
      for (int replica : {0, 1}) world_->stop_replica(replica, seconds(2));
    });
    at(seconds(29), [this] { no_trouble(); });
    at(seconds(100), [this] {
      expect_first_attempt_runs("team-b", "one");
      EXPECT_EQ(status("team-b", "many").attempt, 40);
      for (const char* name : {"one", "many"}) {
        EXPECT_EQ(status("team-b", name).disruptions, 0) << name;
      }
    });
  });
}

// The attempt goes on as soon as the watch shows its pod, and so the metric has it.
TEST_F(SlowCreations, ARecoveryIsOverWhenThePodIsThereHoweverLateTheAnswer) {
  run(minutes(2), [this] {
    at(seconds(5), [this] { create("team-b", "b"); });
    at(seconds(20), [this] {
      trouble([](const ApiRequest& request) {
        return Fate{.answer_held = is_creation(request) ? Duration(seconds(8)) : Duration::zero()};
      });
      kill_pod("team-b", "b");
    });
    at(seconds(22), [this] {
      EXPECT_TRUE(has_pod("team-b", "b"));
      ASSERT_EQ(world_->replica(0)->recoveries.size(), 1u);
      EXPECT_LT(world_->replica(0)->recoveries[0].second, seconds(2));
    });
    at(seconds(60), [this] { EXPECT_EQ(world_->replica(0)->recoveries.size(), 1u); });
  });
}

// ---- A pod that is being created belongs to the job.

class Unanswered : public SlowCreations {
 protected:
  // The job's creations take 5 s. Something ends it after one.
  void make_slow(Json more = Json::object()) {
    hold("team-b", seconds(5));
    at(seconds(5), [this, more] { create("team-b", "b", more); });
  }
  void cancel_at(Duration when) {
    at(when, [this] { world_->users().patch("team-b", "b", {{"cancel", true}}); });
  }
  void expect_open(const std::string& why) {
    const reconciler::Status now = status("team-b", "b");
    EXPECT_FALSE(is_terminal(now.phase)) << why;
    ASSERT_TRUE(now.waiting) << why;
    EXPECT_EQ(now.waiting->reason.text(), "PodCreationUnanswered") << why;
    EXPECT_TRUE(now.waiting->deadline) << why;
  }
};

TEST_F(Unanswered, ACancelledJobWaitsForThePodThatIsBeingCreated) {
  run(minutes(2), [this] {
    make_slow();
    cancel_at(seconds(6));
    at(milliseconds(8500), [this] { expect_open("cancelled"); });
    at(seconds(100),
       [this] { EXPECT_EQ(status("team-b", "b").phase, reconciler::Phase::kCancelled); });
  });
}

TEST_F(Unanswered, SoDoesOneWhoseTimeIsOver) {
  run(minutes(2), [this] {
    make_slow({{"activeDeadlineSeconds", 2}});
    at(milliseconds(9200), [this] { expect_open("overdue"); });
    at(seconds(100),
       [this] { EXPECT_EQ(status("team-b", "b").phase, reconciler::Phase::kFailed); });
  });
}

TEST_F(Unanswered, NoStageBeginsBesideIt) {
  const Json stages = Json::array(
      {{{"name", "clean"}, {"when", "Always"}, {"template", drawn_spec(7)["template"]}}});
  run(minutes(3), [this, stages] {
    make_slow({{"stages", stages}});
    cancel_at(seconds(6));
    at(milliseconds(8500), [this] {
      expect_open("cancelled");
      EXPECT_EQ(status("team-b", "b").attempt, 1) << "the clean-up waits";
    });
    at(minutes(2), [this] { EXPECT_EQ(status("team-b", "b").attempt, 2); });
  });
}

TEST_F(Unanswered, AJobThatWasSuspendedMeanwhileAndIsCancelledWaitsToo) {
  run(minutes(2), [this] {
    make_slow();
    at(seconds(6), [this] { world_->users().patch("team-b", "b", {{"suspend", true}}); });
    cancel_at(milliseconds(7500));
    at(milliseconds(9200), [this] { expect_open("suspended, then cancelled"); });
    at(seconds(100),
       [this] { EXPECT_EQ(status("team-b", "b").phase, reconciler::Phase::kCancelled); });
  });
}

// The first request makes the pod after its time, while the second one is under way.
TEST_F(Unanswered, ARequestThatDidNotMakeThePodMayMakeItAgain) {
  int sent = 0;
  run(minutes(3), [this, &sent] {
    trouble([&sent](const ApiRequest& request) {
      if (!is_of(request, "team-b") || !is_creation(request)) return Fate{};
      return Fate{.held = ++sent == 1 ? milliseconds(15'500) : seconds(25), .on_the_way = true};
    });
    at(seconds(5), [this] { create("team-b", "b"); });
    cancel_at(seconds(25));
    at(seconds(24), [this, &sent] {
      EXPECT_EQ(sent, 2);
      EXPECT_TRUE(has_pod("team-b", "b"));
    });
    at(seconds(35), [this] {
      EXPECT_FALSE(has_pod("team-b", "b"));
      expect_open("the second one is under way");
    });
    at(seconds(100), [this] {
      EXPECT_FALSE(has_pod("team-b", "b"));
      EXPECT_EQ(status("team-b", "b").phase, reconciler::Phase::kCancelled);
    });
  });
}

// The next process knows the attempt's record alone.
TEST_F(Unanswered, ANewProcessWaitsUntilNoRequestOfTheLastOneCanSucceed) {
  run(minutes(4), [this] {
    at(seconds(5), [this] {
      create("team-b", "b");
      create("team-b", "known");
    });
    at(seconds(20), [this] { kill_pod("team-b", "b"); });
    at(milliseconds(19900), [this] { hold("team-b", minutes(2)); });
    at(milliseconds(20500), [this] { world_->crash_replica(0, seconds(2)); });
    at(seconds(25), [this] {
      no_trouble();
      for (const char* name : {"b", "known"}) {
        world_->users().patch("team-b", name, {{"cancel", true}});
      }
    });
    at(seconds(75), [this] {
      expect_open("the take-over was 65 s ago at most");
      EXPECT_EQ(status("team-b", "known").phase, reconciler::Phase::kCancelled)
          << "its pod is known";
    });
    at(seconds(112),
       [this] { EXPECT_EQ(status("team-b", "b").phase, reconciler::Phase::kCancelled); });
  });
}

// The record has room for a few ends only, and others come soon after these.
TEST_F(Unanswered, ANewProcessForgetsNoneOfManyRequests) {
  work_lasts = seconds(1);
  run(minutes(4), [this] {
    at(seconds(4), [this] { hold("team-b", minutes(2)); });
    at(seconds(5), [this] { create("team-b", "b", {{"completions", 20}, {"parallelism", 20}}); });
    at(seconds(8), [this] {
      world_->crash_replica(0, seconds(2));
      no_trouble();
    });
    at(seconds(70), [this] {
      EXPECT_EQ(status("team-b", "b").completed.size(), 20);
      expect_open("the take-over was 65 s ago at most");
    });
    at(seconds(120),
       [this] { EXPECT_EQ(status("team-b", "b").phase, reconciler::Phase::kSucceeded); });
  });
}

TEST_F(Unanswered, AQueueKeepsThePermitOfAJobWhosePodMayStillCome) {
  run(minutes(4), [this] {
    at(seconds(4), [this] {
      hold("team-b", minutes(2));
      ASSERT_TRUE(world_->users().create_queue("team-b", "q", {{"concurrency", 1}}));
    });
    at(seconds(5), [this] {
      create("team-b", "b", {{"queue", {{"name", "q"}}}, {"podReplacementPolicy", "Failed"}});
    });
    at(seconds(8), [this] { world_->crash_replica(0, seconds(2)); });
    at(seconds(9), [this] { create("team-b", "next", {{"queue", {{"name", "q"}}}}); });
    at(seconds(40), [this] {
      no_trouble();
      world_->users().patch("team-b", "b", {{"suspend", true}});
    });
    at(seconds(70), [this] {
      EXPECT_EQ(status("team-b", "b").phase, reconciler::Phase::kSuspended);
      EXPECT_EQ(status("team-b", "next").attempt, 0);
    });
    at(seconds(130), [this] { EXPECT_EQ(status("team-b", "next").attempt, 1); });
  });
}

// This process has had an answer to each of its requests.
TEST_F(Unanswered, AQueueTakesThePermitOfAJobWhosePodWasOnlyRefused) {
  run(minutes(2), [this] {
    at(seconds(4), [this] {
      trouble([](const ApiRequest& request) {
        const bool struck = is_of(request, "team-b") && is_creation(request);
        return Fate{.refused = struck ? 403 : 0};
      });
      ASSERT_TRUE(world_->users().create_queue("team-b", "q", {{"concurrency", 1}}));
    });
    at(seconds(5), [this] {
      create("team-b", "b", {{"queue", {{"name", "q"}}}, {"podReplacementPolicy", "Failed"}});
    });
    at(seconds(9), [this] { create("team-b", "next", {{"queue", {{"name", "q"}}}}); });
    at(seconds(40), [this] {
      EXPECT_EQ(status("team-b", "b").attempt, 1);
      EXPECT_EQ(status("team-b", "next").attempt, 0);
      world_->users().patch("team-b", "b", {{"suspend", true}});
    });
    at(seconds(43), [this] { EXPECT_EQ(status("team-b", "next").attempt, 1); });
  });
}

// ---- A job that waits for its turn.

class Turns : public SlowCreations {
 protected:
  void count_status_writes(const std::string& ns, const std::string& name) {
    world_->network().on_send = [this, end = "/" + name + "/status", ns](const Delivery& sent) {
      writes += is_status_write(sent.request) && is_of(sent.request, ns) &&
                sent.request.target.ends_with(end);
    };
  }
  std::string waits_for(const std::string& ns, const std::string& name) {
    const auto waiting = status(ns, name).waiting;
    return waiting ? waiting->reason.text() : "";
  }
  int writes = 0;
};

TEST_F(Turns, AJobWhoseNamespacesCreationsHangSaysSoOnce) {
  run(minutes(2), [this] {
    hold("team-b", seconds(30));
    at(seconds(5), [this] {
      for (int i = 0; i < 120; ++i) create("team-b", "b" + std::to_string(i));
    });
    at(seconds(6), [this] {
      count_status_writes("team-b", "late");
      create("team-b", "late");
    });
    at(seconds(12), [this] {
      EXPECT_EQ(status("team-b", "late").phase, reconciler::Phase::kPending);
      EXPECT_EQ(waits_for("team-b", "late"), "PodCreationQueued");
      EXPECT_FALSE(status("team-b", "late").waiting->deadline);
    });
    at(minutes(1), [this] { EXPECT_EQ(writes, 1); });
  });
}

TEST_F(Turns, ALineThatMovesCostsNoWrite) {
  run(minutes(1), [this] {
    hold("team-b", milliseconds(400));
    at(seconds(5), [this] {
      for (int i = 0; i < 500; ++i) create("team-b", "b" + std::to_string(i));
    });
    for (int second = 6; second < 20; ++second) {
      at(seconds(second), [this] {
        for (int i = 0; i < 500; ++i) {
          EXPECT_NE(waits_for("team-b", "b" + std::to_string(i)), "PodCreationQueued") << i;
        }
      });
    }
  });
}

// Whoever is gone by its turn leaves it to others.
TEST_F(Turns, AJobThatIsDeletedMeanwhileKeepsNoTurn) {
  run(minutes(4), [this] {
    hold("team-b", seconds(30));
    at(seconds(5), [this] {
      for (int i = 0; i < 120; ++i) create("team-b", "b" + std::to_string(i));
    });
    at(seconds(12), [this] {
      for (int i = 0; i < 120; ++i) {
        world_->users().delete_job("team-b/b" + std::to_string(i), 0, /*recreate=*/false);
      }
    });
    at(seconds(90), [this] { no_trouble(); });
    at(seconds(100), [this] { create("team-b", "late"); });
    at(seconds(102), [this] { expect_first_attempt_runs("team-b", "late"); });
  });
}

// The metric that says that a job is stuck must not grow for it, either.
TEST_F(Turns, ABackOffThatEndsMeanwhileLeavesNoDeadlineBehind) {
  run(minutes(3), [this] {
    at(seconds(5), [this] {
      create("team-b", "b", {{"retryBackoff", {{"initialSeconds", 20}, {"jitterPercent", 0}}}});
    });
    at(seconds(20), [this] { kill_pod("team-b", "b"); });
    at(seconds(30), [this] { kill_pod("team-b", "b"); });
    at(seconds(35), [this] {
      EXPECT_EQ(waits_for("team-b", "b"), "RetryBackoff");
      hold("team-b", seconds(30));
      for (int i = 0; i < 120; ++i) create("team-b", "b" + std::to_string(i));
    });
    at(seconds(53), [this] {
      EXPECT_EQ(waits_for("team-b", "b"), "PodCreationQueued");
      EXPECT_FALSE(status("team-b", "b").waiting->deadline);
    });
  });
}

// It does not wait for a back-off.
TEST_F(Turns, ALossMeanwhileSaysSoAtOnce) {
  run(minutes(1), [this] {
    at(seconds(5), [this] { create("team-b", "b"); });
    at(seconds(10), [this] {
      hold("team-b", seconds(30));
      for (int i = 0; i < 120; ++i) create("team-b", "b" + std::to_string(i));
    });
    at(seconds(15), [this] {
      count_status_writes("team-b", "b");
      kill_pod("team-b", "b");
    });
    at(seconds(17), [this] {
      EXPECT_EQ(waits_for("team-b", "b"), "PodCreationQueued");
      EXPECT_LE(writes, 2) << "the loss, and perhaps before it that the pod is being stopped";
    });
  });
}

}  // namespace
}  // namespace holdfast::simulation
