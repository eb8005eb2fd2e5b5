// The steady time of a real process. It counts the time that the machine was suspended, too
// (CLOCK_BOOTTIME): on waking, the leases that others hold look as old as they are, and so does the
// last renewal of our own. A pause that the kernel is not told of (a virtual machine that is
// stopped from outside, a frozen container's host) shows only as far as the host says.
//
// For RealLoop and for I/O threads; everything else asks its Loop.
#pragma once

#include "core/time.h"

namespace holdfast {

SteadyTime steady_now();

}  // namespace holdfast
