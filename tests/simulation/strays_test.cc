// Whatever has our finalizer is found once its job is gone: by owner, by name or by finalizer, also
// without a label.
#include "reconciler/names.h"
#include "tests/simulation/tenancy.h"

namespace holdfast::simulation {
namespace {

class Strays : public Tenancy {
 protected:
  std::string pod_of(const std::string& name) { return status("team-b", name).run().pod_name; }
  const Json* find(const std::string& pod) { return world_->server().find("pods", "team-b", pod); }
  bool is_held(const std::string& pod) {
    const Json* const there = find(pod);
    return there && !holdfast::at(holdfast::at(*there, "metadata"), "finalizers").empty();
  }
  void edit(const std::string& pod, const Json& metadata) {
    world_->ledger().excuse("team-b/" + pod);
    EXPECT_TRUE(world_->gateway().ask("user", "PATCH", "/api/v1/namespaces/team-b/pods/" + pod,
                                      {{"metadata", metadata}}, "application/merge-patch+json"));
  }
  void strip(const std::string& pod) { edit(pod, {{"labels", nullptr}}); }
  void make(const std::string& pod, Json labels) {
    const Json body = {{"metadata",
                        {{"name", pod},
                         {"labels", std::move(labels)},
                         {"finalizers", Json::array({reconciler::kFinalizer})}}},
                       {"spec", drawn_spec(7)["template"]["spec"]}};
    EXPECT_TRUE(world_->gateway().ask("user", "POST", "/api/v1/namespaces/team-b/pods", body));
  }
  std::string uid_of_job(const std::string& name) {
    const Json* const job = world_->server().find("durablejobs", "team-b", name);
    return job ? string_at(holdfast::at(*job, "metadata"), "uid") : "";
  }
  void remove(const std::string& name) {
    world_->users().delete_job("team-b/" + name, 0, /*recreate=*/false);
  }
};

TEST_F(Strays, APodThatLostItsLabelsAndItsJobAtOnceIsReleased) {
  std::string pod;
  run(minutes(2), [this, &pod] {
    at(seconds(20), [this] { create("team-b", "b"); });
    at(seconds(40), [this, &pod] {
      pod = pod_of("b");
      strip(pod);
      remove("b");
    });
    at(seconds(46), [this, &pod] { EXPECT_FALSE(is_held(pod)); });
  });
}

TEST_F(Strays, OneWhoseJobWentWhileNoOperatorRanIsFoundByTheNext) {
  std::string pod;
  run(minutes(3), [this, &pod] {
    at(seconds(20), [this] { create("team-b", "b"); });
    at(seconds(40), [this, &pod] {
      pod = pod_of("b");
      world_->crash_replica(0, seconds(15));
    });
    at(seconds(45), [this, &pod] {
      strip(pod);
      remove("b");
    });
    // The take-over, and the first walk.
    at(seconds(90), [this, &pod] { EXPECT_FALSE(is_held(pod)); });
  });
}

TEST_F(Strays, AWalkFindsWhatNothingNames) {
  bool is_released = false;
  run(minutes(25), [this, &is_released] {
    work_lasts = minutes(60);
    at(seconds(20), [this] { create("team-b", "b"); });
    at(seconds(60), [this, &is_released] {
      make("b-x", Json::object());
      make("b-9-zzzzz", Json::object());
      const std::string pod = pod_of("b");
      strip(pod);
      world_->network().refuses = [pod, &is_released](const Delivery& delivery) {
        const ApiRequest& request = delivery.request;
        is_released = is_released || (request.target.ends_with("/pods/" + pod) &&
                                      request.body.find("$deleteFrom") != std::string::npos);
        return false;
      };
    });
    at(minutes(12), [this] {
      EXPECT_FALSE(is_held("b-x"));
      EXPECT_FALSE(is_held("b-9-zzzzz"));
      EXPECT_TRUE(is_held(pod_of("b"))) << "its job runs";
      EXPECT_EQ(status("team-b", "b").attempt, 1);
    });
  });
  EXPECT_FALSE(is_released) << "not even for a moment";
}

// Its namespace could not go before it, nor could its job before the namespace.
TEST_F(Strays, APodOfAnEndedJobIsReleasedAlsoIfTheEndWasCutShort) {
  std::string pod;
  run(minutes(25), [this, &pod] {
    work_lasts = seconds(20);
    at(seconds(20), [this] { create("team-b", "b"); });
    at(seconds(30), [this, &pod] {
      pod = pod_of("b");
      strip(pod);
      world_->network().refuses = [](const Delivery& delivery) {
        return delivery.request.method == "PATCH" &&
               delivery.request.target.find("/pods/b-") != std::string::npos;
      };
    });
    at(minutes(2), [this, &pod] {
      EXPECT_EQ(status("team-b", "b").phase, reconciler::Phase::kSucceeded);
      EXPECT_TRUE(is_held(pod));
      world_->crash_replica(0, seconds(5));
      world_->network().refuses = nullptr;
    });
    at(minutes(14), [this, &pod] { EXPECT_FALSE(is_held(pod)); });
  });
}

TEST_F(Strays, APodThatCannotBeReleasedHoldsUpNoOther) {
  run(minutes(25), [this] {
    work_lasts = minutes(60);
    at(seconds(60), [this] {
      make("a-x", Json::object());
      make("b-x", Json::object());
    });
    at(seconds(61), [this] {
      world_->network().refuses = [](const Delivery& delivery) {
        return delivery.request.method == "PATCH" &&
               delivery.request.target.find("/pods/a-x") != std::string::npos;
      };
    });
    at(minutes(12), [this] {
      EXPECT_TRUE(is_held("a-x"));
      EXPECT_FALSE(is_held("b-x"));
      world_->network().refuses = nullptr;
    });
  });
}

TEST_F(Strays, APodWithAJobsUidAndNothingElseIsNobodysWithOrWithoutTheJobsName) {
  run(minutes(2), [this] {
    at(seconds(20), [this] { create("team-b", "b"); });
    at(seconds(30), [this] {
      make("one", {{reconciler::kJobUidLabel, uid_of_job("b")}});
      make("two", {{reconciler::kJobUidLabel, uid_of_job("b")}, {reconciler::kJobNameLabel, "b"}});
    });
    at(seconds(33), [this] {
      EXPECT_FALSE(is_held("one"));
      EXPECT_FALSE(is_held("two"));
      EXPECT_TRUE(is_held(pod_of("b")));
    });
    at(seconds(40), [this] {
      make("three", {{reconciler::kJobUidLabel, uid_of_job("b")}});
      remove("b");
    });
    at(seconds(44), [this] { EXPECT_FALSE(is_held("three")); });
  });
}

// Its own name and its mark say which attempt's pod it is, so its outcome counts.
TEST_F(Strays, TheAttemptsPodKeepsItWhateverIsTakenFromIt) {
  run(minutes(2), [this] {
    at(seconds(20), [this] { create("team-b", "b"); });
    at(seconds(40), [this] {
      edit(pod_of("b"), {{"labels", {{reconciler::kJobNameLabel, nullptr}}}});
    });
    at(seconds(50), [this] {
      EXPECT_TRUE(is_held(pod_of("b")));
      EXPECT_EQ(status("team-b", "b").attempt, 1);
    });
  });
}

}  // namespace
}  // namespace holdfast::simulation
