#include "operator/runtime/sync_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::runtime {
namespace {

using testing::HasSubstr;

std::string jobs(const std::string& trouble) {
  return explain_unsynced({"/apis/holdfast.dev/v1alpha1", "durablejobs", trouble});
}

TEST(SyncReport, AMissingCrdIsSaidWithTheCommandThatInstallsIt) {
  EXPECT_THAT(jobs("the server could not find the requested resource"),
              HasSubstr("kubectl apply -f crds/"));
  EXPECT_THAT(jobs("the server answered with HTTP status 404"),
              HasSubstr("kubectl apply -f crds/"));
}

TEST(SyncReport, AForbiddenListIsSaidWithTheVerbAndWhatToGrant) {
  const std::string text = explain_unsynced(
      {"/api/v1", "pods",
       "pods is forbidden: User \"x\" cannot list resource \"pods\" in API group \"\" at the "
       "cluster scope"});
  EXPECT_THAT(text, HasSubstr("cannot list resource \"pods\""));
  EXPECT_THAT(text, HasSubstr("grant the operator get, list and watch on pods"));
}

TEST(SyncReport, RefusedCredentialsAreSaid) {
  EXPECT_THAT(jobs("Unauthorized"), HasSubstr("check the kubeconfig"));
}

TEST(SyncReport, AnUnknownBuiltInKindPointsToTheServersVersion) {
  EXPECT_THAT(explain_unsynced({"/apis/coordination.k8s.io/v1", "leases",
                                "the server could not find the requested resource"}),
              HasSubstr("leases in /apis/coordination.k8s.io/v1"));
}

TEST(SyncReport, WhateverElseIsPassedOn) {
  EXPECT_EQ(jobs("connection refused"), "connection refused");
  EXPECT_EQ(jobs("connect to 127.0.0.1:40401: connection refused"),
            "connect to 127.0.0.1:40401: connection refused");
  EXPECT_THAT(jobs(""), HasSubstr("has not answered"));
}

}  // namespace
}  // namespace holdfast::runtime
