// Each replica watches the jobs of its own shards, by status.shard.
#include "operator/membership/lease_codec.h"
#include "reconciler/names.h"
#include "reconciler/shards.h"
#include "tests/simulation/objects.h"
#include "tests/simulation/tenancy.h"

namespace holdfast::simulation {
namespace {

class JobShards : public Tenancy {
 protected:
  static constexpr int kJobs = 20;

  JobShards() {
    replicas = 2;
    by_namespace = false;
  }
  std::size_t held(std::size_t replica) { return world_->replica(replica)->jobs_held(); }
  void create_jobs() {
    for (int job = 0; job < kJobs; ++job) create("team-b", "b" + std::to_string(job));
  }
  std::string shard(const std::string& name) { return status("team-b", name).shard; }
  // As a restore, an older version or an administrator does.
  void record_shard(const std::string& name, const Json& shard) {
    world_->ledger().excuse("team-b/" + name);
    edit(name + "/status", {{"status", {{"shard", shard}}}});
  }
  void edit(const std::string& what, const Json& change) {
    EXPECT_TRUE(world_->gateway().ask(
        "user", "PATCH", "/apis/holdfast.dev/v1alpha1/namespaces/team-b/durablejobs/" + what,
        change, "application/merge-patch+json"));
  }
  std::string holder_of(int shard) {
    const Json* const lease =
        world_->server().find("leases", "holdfast-system", membership::shard_lease_name(shard));
    return lease ? string_at(holdfast::at(*lease, "spec"), "holderIdentity") : "";
  }
  void hang_creations() {
    trouble([](const ApiRequest& request) {
      const bool hangs = is_creation(request);
      return Fate{.held = hangs ? Duration(seconds(40)) : Duration(0), .on_the_way = hangs};
    });
  }
  // The job goes to the shard of another replica. Returns the new one.
  std::string give_away(const std::string& name) {
    std::string wanted = reconciler::shard_label(another_replicas(std::stoi(shard(name))), shards);
    record_shard(name, nullptr);
    record_shard(name, wanted);
    return wanted;
  }
  const Json* find_pod(const std::string& name) {
    return world_->server().find("pods", "team-b", name);
  }
  // A shard that another replica has.
  int another_replicas(int shard) {
    int other = 0;
    while (other + 1 < shards && holder_of(other) == holder_of(shard)) ++other;
    EXPECT_NE(holder_of(other), holder_of(shard));
    return other;
  }
};

TEST_F(JobShards, AReplicaCachesTheJobsOfItsOwnShardsAndThoseOfADeadReplicaOnceItHasThem) {
  run(minutes(8), [this] {
    at(seconds(30), [this] { create_jobs(); });
    // The one that began alone has all shards for a minute.
    at(seconds(120), [this] {
      EXPECT_EQ(held(0) + held(1), std::size_t{kJobs});
      EXPECT_GT(held(0), 0U);
      EXPECT_GT(held(1), 0U);
      world_->crash_replica(1, minutes(2));
    });
    at(seconds(160), [this] { EXPECT_EQ(held(0), std::size_t{kJobs}); });
    // It is back, has its share, and the other one has forgotten that after a minute.
    at(minutes(7), [this] {
      EXPECT_EQ(held(0) + held(1), std::size_t{kJobs});
      EXPECT_GT(held(1), 0U);
    });
  });
}

TEST_F(JobShards, AShardThatIsMissingOrOfAnotherNumberIsRecordedAgain) {
  std::string right;
  run(minutes(4), [this, &right] {
    at(seconds(90), [this] { create("team-b", "b"); });
    at(seconds(120), [this, &right] {
      right = shard("b");
      EXPECT_TRUE(right.ends_with("-of-8")) << right;
      record_shard("b", nullptr);
    });
    at(seconds(150), [this, &right] {
      EXPECT_EQ(shard("b"), right);
      record_shard("b", "3-of-16");
    });
    at(seconds(180), [this, &right] {
      EXPECT_EQ(shard("b"), right);
      EXPECT_EQ(held(0) + held(1), 1U);
      record_shard("b", nullptr);
      record_shard("b", "99-of-8");
    });
    at(seconds(210), [this, &right] { EXPECT_EQ(shard("b"), right); });
  });
}

TEST_F(JobShards, WithoutAQueueTheShardInTheStatusIsTheJobs) {
  std::string wanted;
  std::size_t has_it = 0;
  run(minutes(4), [&] {
    at(seconds(90), [this] { create("team-b", "b", {{"suspend", true}}); });
    at(seconds(120), [&] {
      const std::string before = shard("b");
      const int other = another_replicas(std::stoi(before));
      wanted = reconciler::shard_label(other, shards);
      has_it = holder_of(other).starts_with("holdfast-1") ? 1 : 0;
      EXPECT_EQ(held(has_it), 0U);
      record_shard("b", nullptr);
      record_shard("b", wanted);
    });
    at(seconds(140), [&] {
      EXPECT_EQ(shard("b"), wanted);
      EXPECT_EQ(held(has_it), 1U);
      EXPECT_EQ(held(1 - has_it), 0U) << "it has read where the job is";
    });
  });
}

// Its pod has the label of the shard that it was made in.
TEST_F(JobShards, AnAttemptGoesOnWhenItsJobGetsAnotherReplicasShard) {
  std::string wanted;
  std::string pod;
  std::size_t has_it = 0;
  run(minutes(6), [&, this] {
    at(seconds(90), [this] { create("team-b", "b"); });
    at(seconds(120), [&, this] {
      ASSERT_TRUE(has_pod("team-b", "b"));
      pod = status("team-b", "b").run().pod_name;
      const int other = another_replicas(std::stoi(shard("b")));
      wanted = reconciler::shard_label(other, shards);
      has_it = holder_of(other).starts_with("holdfast-1") ? 1 : 0;
      record_shard("b", nullptr);
      record_shard("b", wanted);
    });
    at(seconds(300), [&, this] {
      EXPECT_EQ(shard("b"), wanted);
      EXPECT_EQ(status("team-b", "b").run().pod_name, pod);
      EXPECT_TRUE(has_pod("team-b", "b"));
      EXPECT_EQ(status("team-b", "b").disruptions, 0);
      EXPECT_EQ(held(has_it), 1U);
      EXPECT_EQ(held(1 - has_it), 0U);
    });
  });
}

// Only the replica that asked for it watches the pod: it has the label of the shard before.
class LatePod : public JobShards, public testing::WithParamInterface<int> {};

TEST_P(LatePod, IsStoppedAsOfAnOldAttemptByTheReplicaThatHasItsJobByNow) {
  shards = GetParam();
  std::string first;
  std::string wanted;
  run(minutes(6), [&, this] {
    at(seconds(90), [this] {
      hang_creations();
      create("team-b", "b");
    });
    at(seconds(95), [&, this] {
      no_trouble();
      first = status("team-b", "b").run().pod_name;
      wanted = give_away("b");
    });
    at(seconds(125), [&, this] {
      EXPECT_EQ(find_pod(first), nullptr) << "it is still on its way";
      EXPECT_EQ(status("team-b", "b").attempt, 2);
      EXPECT_TRUE(has_pod("team-b", "b"));
    });
    at(seconds(133), [&, this] {
      const Json* const pod = find_pod(first);
      EXPECT_TRUE(!pod || is_deleting(*pod));
    });
    at(seconds(300), [&, this] {
      EXPECT_EQ(find_pod(first), nullptr);
      EXPECT_EQ(shard("b"), wanted);
      EXPECT_EQ(status("team-b", "b").attempt, 2);
      EXPECT_TRUE(has_pod("team-b", "b"));
    });
  });
}
// With so many shards each replica caches all jobs.
INSTANTIATE_TEST_SUITE_P(All, LatePod, testing::Values(8, 1000));

TEST_F(JobShards, WithThePolicyFailedTheNextAttemptWaitsForAPodThatAnotherReplicaAskedFor) {
  std::string first;
  run(minutes(6), [&, this] {
    at(seconds(90), [this] {
      hang_creations();
      create("team-b", "b", {{"podReplacementPolicy", "Failed"}});
    });
    at(seconds(95), [&, this] {
      no_trouble();
      first = status("team-b", "b").run().pod_name;
      give_away("b");
    });
    at(seconds(125), [&, this] {
      EXPECT_EQ(find_pod(first), nullptr) << "it is still on its way";
      EXPECT_EQ(status("team-b", "b").attempt, 1);
    });
    at(seconds(300), [&, this] {
      EXPECT_EQ(find_pod(first), nullptr);
      EXPECT_EQ(status("team-b", "b").attempt, 2);
      EXPECT_TRUE(has_pod("team-b", "b"));
    });
  });
}

// Whoever removes the shard gives the job back to that of its UID.
TEST_F(JobShards, APodThatComesOnceItsJobIsBackInTheShardOfItsUidIsStopped) {
  std::string first;
  run(minutes(6), [&, this] {
    at(seconds(90), [this] { create("team-b", "b", {{"suspend", true}}); });
    at(seconds(100), [this] { give_away("b"); });
    at(seconds(110), [this] {
      hang_creations();
      edit("b", {{"spec", {{"suspend", false}}}});
    });
    at(seconds(115), [&, this] {
      no_trouble();
      first = status("team-b", "b").run().pod_name;
      record_shard("b", nullptr);
    });
    at(seconds(153), [&, this] {
      const Json* const pod = find_pod(first);
      EXPECT_TRUE(!pod || is_deleting(*pod));
      EXPECT_EQ(status("team-b", "b").attempt, 2);
      EXPECT_TRUE(has_pod("team-b", "b"));
    });
    at(seconds(300), [&, this] {
      EXPECT_EQ(find_pod(first), nullptr);
      EXPECT_EQ(status("team-b", "b").attempt, 2);
    });
  });
}

TEST_F(JobShards, OneThatIsNotTheQueuesIsCorrectedByItsHolderAndTheJobGoesOn) {
  const int right = reconciler::shard_of("team-b", shards);
  run(minutes(4), [this, right] {
    at(seconds(90), [this] {
      ASSERT_TRUE(world_->users().create_queue("team-b", "q", {{"concurrency", 5}}));
      create("team-b", "b", {{"queue", {{"name", "q"}}}, {"suspend", true}});
    });
    at(seconds(120), [this, right] {
      EXPECT_EQ(shard("b"), reconciler::shard_label(right, shards));
      record_shard("b", reconciler::shard_label(another_replicas(right), shards));
      edit("b", {{"spec", {{"suspend", false}}}});
    });
    at(seconds(140), [this, right] {
      EXPECT_EQ(shard("b"), reconciler::shard_label(right, shards));
      EXPECT_TRUE(has_pod("team-b", "b"));
      EXPECT_EQ(held(0) + held(1), 1U);
    });
  });
}

// As after a change of --shards: no label says that the namespace's shard has the job.
TEST_F(JobShards, APodWhoseLabelMeansNothingLeadsToItsSettledJobInTheShardOfTheQueue) {
  std::vector<std::string> pods;
  work_lasts = seconds(20);
  run(minutes(6), [&, this] {
    at(seconds(90), [this] {
      ASSERT_TRUE(world_->users().create_queue("team-b", "q", {{"concurrency", kJobs}}));
      for (int job = 0; job < kJobs; ++job) {
        create("team-b", "b" + std::to_string(job), {{"queue", {{"name", "q"}}}});
      }
    });
    at(seconds(105), [&, this] {
      for (int job = 0; job < kJobs; ++job) {
        pods.push_back(status("team-b", "b" + std::to_string(job)).run().pod_name);
        ASSERT_NE(find_pod(pods.back()), nullptr);
      }
    });
    at(seconds(200), [&, this] {
      EXPECT_EQ(held(0) + held(1), 0U) << "all are settled";
      const Json metadata = {{"labels", {{reconciler::kShardLabel, "3-of-16"}}},
                             {"finalizers", Json::array({reconciler::kFinalizer})}};
      for (const std::string& pod : pods) {
        world_->ledger().excuse("team-b/" + pod);
        EXPECT_TRUE(world_->gateway().ask("user", "PATCH", "/api/v1/namespaces/team-b/pods/" + pod,
                                          {{"metadata", metadata}},
                                          "application/merge-patch+json"));
      }
    });
    at(seconds(215), [&, this] {
      for (const std::string& name : pods) {
        const Json* const pod = find_pod(name);
        EXPECT_TRUE(pod && holdfast::at(holdfast::at(*pod, "metadata"), "finalizers").empty());
      }
      EXPECT_EQ(held(0) + held(1), 0U);
    });
  });
}

TEST_F(JobShards, TheWalkOverFinishedJobsReadsThoseOfItsOwnShards) {
  int lists = 0;
  run(minutes(14), [&, this] {
    // Both have their shares, and what they watched before is forgotten.
    at(minutes(4), [&, this] {
      trouble([&lists](const ApiRequest& request) {
        if (request.target.find("status.settled=true") == std::string::npos) return Fate();
        ++lists;
        EXPECT_NE(request.target.find("-of-8"), std::string::npos) << request.target;
        return Fate();
      });
    });
    at(minutes(13), [&lists] { EXPECT_GE(lists, 2); });
  });
}

// The DurableJob has the shard of the Job's UID. With a queue the Job seems to be the namespace's.
TEST_F(JobShards, AJobThatGetsAQueueLaterIsLeftToTheReplicaThatHasItsDurableJob) {
  lane = true;
  const std::string jobs = "/apis/batch/v1/namespaces/team-b/jobs";
  int reads = 0;
  run(minutes(6), [&, this] {
    at(seconds(90), [&, this] {
      Json spec = {{"managedBy", "holdfast.dev/operator"}};
      spec["template"] = drawn_spec(7)["template"];
      for (int job = 0; job < 6; ++job) {
        const Json metadata = {{"name", "j" + std::to_string(job)}, {"namespace", "team-b"}};
        EXPECT_TRUE(world_->gateway().ask(
            "user", "POST", jobs,
            {{"apiVersion", "batch/v1"}, {"kind", "Job"}, {"metadata", metadata}, {"spec", spec}}));
      }
    });
    at(seconds(150), [&, this] {
      const Json queue = {{"annotations", {{"holdfast.dev/queue", R"({"name": "q"})"}}}};
      for (int job = 0; job < 6; ++job) {
        EXPECT_TRUE(world_->gateway().ask("user", "PATCH", jobs + "/j" + std::to_string(job),
                                          {{"metadata", queue}}, "application/merge-patch+json"));
      }
    });
    at(seconds(200), [&, this] {
      trouble([&reads](const ApiRequest& request) {
        const bool is_read = request.method == "GET" && !is_collection(request) &&
                             request.target.find("/durablejobs/") != std::string::npos;
        if (is_read) ++reads;
        return Fate();
      });
    });
    at(seconds(320), [&, this] {
      EXPECT_EQ(reads, 0) << "a replica without the DurableJob looks for it again and again";
      EXPECT_EQ(held(0) + held(1), 6U);
    });
  });
}

TEST_F(JobShards, AQueueCountsAJobAlsoWhileItsShardIsWrong) {
  const int right = reconciler::shard_of("team-b", shards);
  std::string pod;
  run(minutes(5), [&, this] {
    at(seconds(90), [this] {
      ASSERT_TRUE(world_->users().create_queue("team-b", "q", {{"concurrency", 1}}));
      create("team-b", "b", {{"queue", {{"name", "q"}}}});
    });
    at(seconds(100), [this] { create("team-b", "c", {{"queue", {{"name", "q"}}}}); });
    at(seconds(120), [&, this] {
      ASSERT_TRUE(has_pod("team-b", "b"));
      pod = status("team-b", "b").run().pod_name;
      const int other = another_replicas(right);
      const std::size_t who = holder_of(other).starts_with("holdfast-1") ? 1 : 0;
      // Nobody corrects it before the other replica has that shard.
      world_->crash_replica(who, minutes(2));
      record_shard("b", reconciler::shard_label(other, shards));
    });
    at(seconds(125), [this, right] {
      EXPECT_NE(shard("b"), reconciler::shard_label(right, shards));
      EXPECT_FALSE(has_pod("team-b", "c")) << "the only permit is b's";
    });
    at(seconds(200), [&, this] {
      EXPECT_EQ(shard("b"), reconciler::shard_label(right, shards));
      EXPECT_EQ(status("team-b", "b").run().pod_name, pod);
      EXPECT_FALSE(has_pod("team-b", "c"));
    });
  });
}

}  // namespace
}  // namespace holdfast::simulation
