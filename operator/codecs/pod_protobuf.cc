#include "operator/codecs/pod_protobuf.h"

namespace holdfast::codecs {
namespace {

using kube::kObjectMeta;
using kube::ProtobufMessage;
using Type = kube::ProtobufField::Type;

const ProtobufMessage kRestartRule{{{1, "action"}}};
const ProtobufMessage kContainer{{{1, "name"},
                                  {3, "command", Type::kTexts},
                                  {24, "restartPolicy"},
                                  {25, "restartPolicyRules", Type::kMessages, &kRestartRule}}};
const ProtobufMessage kGate{{{1, "name"}}};
const ProtobufMessage kSpec{{{3, "restartPolicy"},
                             {4, "terminationGracePeriodSeconds", Type::kInteger},
                             {10, "nodeName"},
                             {19, "schedulerName"},
                             {38, "schedulingGates", Type::kMessages, &kGate},
                             {20, "initContainers", Type::kMessages, &kContainer},
                             {2, "containers", Type::kMessages, &kContainer}}};

const ProtobufMessage kWaiting{{{1, "reason"}, {2, "message"}}};
const ProtobufMessage kRunning{{{1, "startedAt", Type::kTime}}};
const ProtobufMessage kTerminated{{{1, "exitCode", Type::kInteger},
                                   {3, "reason"},
                                   {4, "message"},
                                   {5, "startedAt", Type::kTime},
                                   {6, "finishedAt", Type::kTime}}};
const ProtobufMessage kState{{{1, "waiting", Type::kMessage, &kWaiting},
                              {2, "running", Type::kMessage, &kRunning},
                              {3, "terminated", Type::kMessage, &kTerminated}}};
const ProtobufMessage kContainerStatus{{{1, "name"},
                                        {2, "state", Type::kMessage, &kState},
                                        {3, "lastState", Type::kMessage, &kState}}};
const ProtobufMessage kCondition{{{1, "type"},
                                  {2, "status"},
                                  {4, "lastTransitionTime", Type::kTime},
                                  {5, "reason"},
                                  {6, "message"}}};
const ProtobufMessage kStatus{{{1, "phase"},
                               {2, "conditions", Type::kMessages, &kCondition},
                               {3, "message"},
                               {4, "reason"},
                               {10, "initContainerStatuses", Type::kMessages, &kContainerStatus},
                               {8, "containerStatuses", Type::kMessages, &kContainerStatus}}};

}  // namespace

const ProtobufMessage kPodProtobuf{{{1, "metadata", Type::kMessage, &kObjectMeta},
                                    {2, "spec", Type::kMessage, &kSpec},
                                    {3, "status", Type::kMessage, &kStatus}}};

}  // namespace holdfast::codecs
