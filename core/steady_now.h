// The steady time of a real process. It includes time in which the machine was suspended
// (CLOCK_BOOTTIME). So after waking, other holders' leases and our own last renewal look as old as
// they are. The kernel does not know of some pauses: a virtual machine stopped from outside, a
// frozen container's host. Those count only as far as the host reports them.
//
// For RealLoop and for I/O threads; everything else asks its Loop.
#pragma once

#include "core/time.h"

namespace holdfast {

SteadyTime steady_now();

}  // namespace holdfast
