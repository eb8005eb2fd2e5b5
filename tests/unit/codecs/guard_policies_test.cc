// The guard is right only if its policies say what this version ships, or come from a later one.
#include "operator/codecs/guard_policies.h"

#include <gtest/gtest.h>

#include <functional>

#include "core/json.h"

namespace holdfast::codecs {
namespace {

constexpr const char* kVersion = "0.4.0";

const GuardObject& shipped(const std::string& resource, const std::string& name) {
  for (const GuardObject& one : guard_objects()) {
    if (one.resource == resource && one.name == name) return one;
  }
  ADD_FAILURE() << "there is no " << name;
  return guard_objects().front();
}

const GuardObject& policy() {
  return shipped("validatingadmissionpolicies", "holdfast-guard-durablejob-status");
}
const GuardObject& binding() {
  return shipped("validatingadmissionpolicybindings", "holdfast-guard-durablejob-status");
}

// As the API server answers: with what it adds, and with what somebody has changed.
std::string fault(const GuardObject& object, const std::function<void(Json& whole)>& change,
                  const char* version = kVersion) {
  Json whole{{"metadata",
              {{"name", object.name},
               {"resourceVersion", "12"},
               {"annotations", {{"holdfast.dev/version", "0.4.0"}}}}},
             {"spec", *parse_json(object.spec)},
             {"status", {{"observedGeneration", 1}}}};
  change(whole);
  return guard_fault(object, *JsonDocument::parse(whole.dump()), version);
}
std::string fault(const GuardObject& object) {
  return fault(object, [](Json&) {});
}

TEST(GuardPolicies, EachPolicyHasABinding) {
  EXPECT_EQ(guard_objects().size(), 4U);
  for (const char* const name : {"holdfast-guard-durablejob", "holdfast-guard-durablejob-status"}) {
    const Json bound = *parse_json(shipped("validatingadmissionpolicybindings", name).spec);
    EXPECT_EQ(bound["policyName"], shipped("validatingadmissionpolicies", name).name);
  }
}

TEST(GuardPolicies, WhatWasShippedIsRight) {
  for (const GuardObject& object : guard_objects()) EXPECT_EQ(fault(object), "");
}

TEST(GuardPolicies, WhatIsNotThereIsMissing) {
  EXPECT_EQ(guard_fault(policy(), JsonView(), kVersion),
            "there is no ValidatingAdmissionPolicy holdfast-guard-durablejob-status");
  EXPECT_EQ(guard_fault(binding(), JsonView(), kVersion),
            "there is no ValidatingAdmissionPolicyBinding holdfast-guard-durablejob-status");
}

TEST(GuardPolicies, WhatGoesIsMissing) {
  const auto goes = [](Json& whole) {
    whole["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z";
  };
  EXPECT_EQ(fault(policy(), goes),
            "ValidatingAdmissionPolicy holdfast-guard-durablejob-status is being deleted");
}

TEST(GuardPolicies, APolicyThatWasWeakenedIsNotTheGuard) {
  using Change = std::function<void(Json & spec)>;
  const std::vector<std::pair<const char*, Change>> changes = {
      {"a rule that is always met",
       [](Json& spec) { spec["validations"][0]["expression"] = "true"; }},
      {"other rules", [](Json& spec) { spec["variables"].back()["expression"] = "''"; }},
      {"no rules", [](Json& spec) { spec["variables"].erase(spec["variables"].size() - 1); }},
      {"rules under another name", [](Json& spec) { spec["variables"].back()["name"] = "old"; }},
      {"nothing to meet", [](Json& spec) { spec["validations"] = Json::array(); }},
      {"a failure that lets writes pass", [](Json& spec) { spec["failurePolicy"] = "Ignore"; }},
      {"a condition",
       [](Json& spec) {
         spec["matchConditions"] = {{{"name", "x"}, {"expression", "false"}}};
       }},
      {"other operations",
       [](Json& spec) { spec["matchConstraints"]["resourceRules"][0]["operations"] = {"CREATE"}; }},
      {"some namespaces",
       [](Json& spec) {
         spec["matchConstraints"]["namespaceSelector"] = {{"matchLabels", {{"a", "b"}}}};
       }},
      {"some objects excluded",
       [](Json& spec) {
         spec["matchConstraints"]["excludeResourceRules"] = {{{"resources", {"*"}}}};
       }},
      {"a parameter",
       [](Json& spec) {
         spec["paramKind"] = {{"kind", "ConfigMap"}};
       }},
      {"some names",
       [](Json& spec) { spec["matchConstraints"]["resourceRules"][0]["resourceNames"] = {"a"}; }},
  };
  for (const auto& [what, change] : changes) {
    EXPECT_EQ(fault(policy(), [&](Json& whole) { change(whole["spec"]); }),
              "ValidatingAdmissionPolicy holdfast-guard-durablejob-status is not as this version "
              "of Holdfast ships it")
        << what;
  }
}

TEST(GuardPolicies, ABindingThatBindsLessIsNotTheGuard) {
  for (const auto& [field, value] :
       {std::pair("validationActions", Json{"Audit"}), std::pair("policyName", Json("other")),
        std::pair("paramRef", Json{{"name", "x"}}),
        std::pair("matchResources", Json{{"matchPolicy", "Exact"}})}) {
    EXPECT_NE(fault(binding(), [&](Json& whole) { whole["spec"][field] = value; }), "") << field;
  }
}

TEST(GuardPolicies, AMemberThatSaysNothingOrThatALaterKubernetesHasIsNoChange) {
  EXPECT_EQ(fault(policy(),
                  [](Json& whole) {
                    whole["spec"]["matchConditions"] = Json::array();
                    whole["spec"]["paramKind"] = nullptr;
                    whole["spec"]["newDefault"] = "Some";
                  }),
            "");
}

std::function<void(Json&)> of_version(const char* version, std::function<void(Json& spec)> change) {
  return [version, change = std::move(change)](Json& whole) {
    whole["metadata"]["annotations"]["holdfast.dev/version"] = version;
    change(whole["spec"]);
  };
}

TEST(GuardPolicies, ALaterVersionMayHaveOtherRulesButNoneThatBindLess) {
  EXPECT_EQ(fault(policy(), of_version("0.5.0",
                                       [](Json& spec) {
                                         spec["validations"][0]["expression"] = "variables.x == 1";
                                         spec["variables"] = {{{"name", "x"}, {"expression", "1"}}};
                                       })),
            "");
  EXPECT_NE(
      fault(policy(), of_version("0.5.0", [](Json& spec) { spec["failurePolicy"] = "Ignore"; })),
      "");
  EXPECT_NE(fault(policy(),
                  of_version("0.5.0",
                             [](Json& spec) {
                               spec["matchConditions"] = {{{"name", "x"}, {"expression", "false"}}};
                             })),
            "");
  EXPECT_NE(fault(binding(),
                  of_version("0.5.0", [](Json& spec) { spec["validationActions"] = {"Warn"}; })),
            "");
}

TEST(GuardPolicies, ALaterVersionMayMatchMoreAndHasSomeRules) {
  const auto versions = [](Json served) {
    return [served](Json& spec) {
      spec["matchConstraints"]["resourceRules"][0]["apiVersions"] = served;
    };
  };
  EXPECT_EQ(fault(policy(), of_version("0.5.0", versions({"v1alpha1", "v1"}))), "");
  EXPECT_NE(fault(policy(), of_version("0.5.0", versions({"v1"}))), "")
      << "writes of the old version pass";
  EXPECT_NE(fault(policy(), of_version("0.4.0", versions({"v1alpha1", "v1"}))), "");
  for (const Json& none : {Json::array(), Json()}) {
    EXPECT_NE(fault(policy(), of_version("0.5.0", [&](Json& spec) { spec["validations"] = none; })),
              "");
  }
}

TEST(GuardPolicies, ThePreReleasesOfAVersionMayFollowEachOther) {
  const auto other = [](const char* version) {
    return of_version(version, [](Json& spec) { spec["variables"].back()["expression"] = "''"; });
  };
  EXPECT_EQ(fault(policy(), other("0.4.0-rc2")), "");
  EXPECT_EQ(fault(policy(), other("0.4.0"), "0.4.0-rc2"), "");
  EXPECT_NE(fault(policy(), other("0.3.0-rc2")), "");
}

TEST(GuardPolicies, OnlyABrokenRuleIsARefusalForGood) {
  const std::string head =
      "durablejobs.holdfast.dev \"a\" is forbidden: ValidatingAdmissionPolicy "
      "'holdfast-guard-durablejob' with binding 'holdfast-guard-durablejob' denied request: ";
  EXPECT_TRUE(is_guard_refusal(head + "spec.heartbeat: heartbeat needs the command"));
  EXPECT_TRUE(is_guard_refusal(head + "metadata.name: the name is too long"));
  EXPECT_FALSE(is_guard_refusal(head + "expression 'a' resulted in error: b"));
  EXPECT_FALSE(is_guard_refusal(
      "ValidatingAdmissionPolicy 'no-fridays' with binding 'x' denied request: spec.a: no"));
}

TEST(GuardPolicies, TheGuardOfALaterVersionIsRightAndThatOfAnEarlierOneIsNot) {
  const auto other = [](const char* version) {
    return of_version(version, [](Json& spec) { spec["variables"].back()["expression"] = "''"; });
  };
  EXPECT_EQ(fault(policy(), other("0.4.1")), "");
  EXPECT_EQ(fault(policy(), other("0.10.0")), "") << "numbers, not letters";
  EXPECT_NE(fault(policy(), other("0.4.0")), "");
  EXPECT_NE(fault(policy(), other("0.3.9")), "");
  EXPECT_NE(fault(policy(), other("latest")), "");
  EXPECT_NE(fault(policy(), other("0.4.1"), "unknown"), "") << "of this operator";
}

}  // namespace
}  // namespace holdfast::codecs
