// The reconciler's input: the job in the API, its pods, and this replica's observations.
#pragma once

#include "reconciler/job.h"
#include "reconciler/limits.h"
#include "reconciler/observed.h"
#include "reconciler/phase.h"
#include "reconciler/pod.h"
#include "reconciler/spec.h"
#include "reconciler/status.h"
