// The reconciler's input: the job in the API, its pods, and this replica's observations.
#pragma once

#include "reconciler/api.h"
#include "reconciler/job.h"
#include "reconciler/observed.h"
#include "reconciler/pod.h"
