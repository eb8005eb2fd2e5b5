/* The intent of a warm job in the work Lease alone: one run, two workers, two owners, no assumption
   about time. The first owner may be paused at any step, and go on after the second one has taken
   over. What is left out is as in workers.pml: renewals, revocations, drains, and the order in which
   a worker that falls silent kills its children before it is cut off.

   An entry of a work Lease is the intent: the attempt is on the job's record later, or never before
   its end. So:
   - each work Lease bears its owner's tenure. Who takes over writes its own into each, by
     compare-and-swap, and reads the entry in the answer. Only then it places. An owner writes
     entries only into Leases that bear its tenure.
   - a write without an answer is followed by another write of that Lease, which says whether it came.
   - a Lease that is gone may have had an entry: its number is spent, once its worker is cut off.
   - the job's end is two writes: the mark `ends`, then a read of all work Leases, then the phase.
     An agent reads the job after it has seen the entry, and begins nothing that has the mark. */
#ifndef MAX
#define MAX 3
#endif
#ifndef FAULTS
#define FAULTS 1
#endif

bool S22_OnePlace, S3_Fence, NothingAfterEnd, S1_OneOutcome;

byte tenure[2] = 1, entry[2], answer[2];
bool stops[2], gone[2], dead[2];
byte child[2], seen[2], looked[2];
byte rec, version;
bool rec_open, ends, over;
byte begun, faults;
byte at_work[MAX + 2];                      /* ghost: the worker + 1 that began it */
/* A write of an entry under way, by owner: it comes at any time, as long as `alive`. */
byte to[3], what[3];
bool alive[3];

inline touch(w) {
  if :: alive[1] && to[1] == w -> alive[1] = false :: else fi;
  if :: alive[2] && to[2] == w -> alive[2] = false :: else fi
}
#ifdef NO_TENURE
#define mine(w) true
#else
#define mine(w) (tenure[w] == o)
#endif
/* Of this worker's attempt nothing runs, and nothing begins. */
#define is_empty(w) (dead[w] || (!gone[w] && (entry[w] == 0 || answer[w] == entry[w])))

proctype network() {
end:
  do
  :: atomic { alive[1] -> entry[to[1]] = what[1]; stops[to[1]] = false; alive[1] = false;
       if :: alive[2] && to[2] == to[1] -> alive[2] = false :: else fi }
  :: atomic { alive[2] -> entry[to[2]] = what[2]; stops[to[2]] = false; alive[2] = false;
       if :: alive[1] && to[1] == to[2] -> alive[1] = false :: else fi }
  od
}

proctype worker(byte w) {
end:
  do
  /* It reads the job live. */
  :: atomic { !dead[w] && !gone[w] && entry[w] > seen[w] && !stops[w] && looked[w] != entry[w] ->
#ifdef NO_LOOK
       looked[w] = entry[w]
#else
       if
       :: ends || over || rec > entry[w] || (rec == entry[w] && !rec_open) ->
            seen[w] = entry[w]; answer[w] = entry[w]
       :: else -> looked[w] = entry[w]
       fi
#endif
     }
  :: atomic { !dead[w] && !gone[w] && entry[w] > seen[w] && !stops[w] && looked[w] == entry[w] ->
       assert(NothingAfterEnd || !over);
       assert(S3_Fence || entry[w] > begun);
       assert(S22_OnePlace || at_work[entry[w]] == 0);
       seen[w] = entry[w]; child[w] = entry[w]; begun = entry[w]; at_work[entry[w]] = w + 1;
       assert(S22_OnePlace || child[0] == 0 || child[1] == 0) }
  :: atomic { child[w] != 0 -> answer[w] = child[w]; child[w] = 0 }
  :: atomic { !dead[w] && !gone[w] && stops[w] && entry[w] > seen[w] ->
       seen[w] = entry[w]; answer[w] = entry[w] }
  :: atomic { !dead[w] && gone[w] -> child[w] = 0; dead[w] = true }
  :: atomic { !dead[w] && faults < FAULTS -> faults++; child[w] = 0; dead[w] = true }
  :: atomic { !gone[w] && faults < FAULTS -> faults++; gone[w] = true; entry[w] = 0; touch(w) }
  od
}

proctype owner(byte o) {
  byte last = 0, at = 0, mark = 0, w = 0;
  byte skips = 0;
  bool busy = false, asked = false;
  bool read[2];
  if
  :: o == 2 ->
     do
     :: w < 2 ->
        if
        :: atomic { !gone[w] ->
             touch(w); tenure[w] = 2;
             if :: entry[w] > last -> last = entry[w]; at = w; busy = true :: else fi }
        :: atomic { gone[w] && dead[w] ->
#ifndef NO_SKIP
             skips++
#endif
           }
#ifdef NO_WAIT_FOR_GONE
        :: gone[w] -> skip
#endif
        fi;
        w++
#ifdef PLACE_BEFORE_ALL
     :: w == 1 -> break
#endif
     :: w == 2 -> break
     od
  :: else
  fi;
  mark = 255;
end:
  do
  /* It reads the record. */
  :: atomic { mark != version -> mark = version; read[0] = false; read[1] = false;
       if :: rec > last -> last = rec; busy = false :: else fi;
       if :: rec == last && !rec_open && busy && last > 0 -> busy = !is_empty(at) :: else fi }
  /* The intent. */
  :: atomic { mark != 255 && !busy && !asked && !ends && !over && last + skips < MAX ->
       if :: w = 0 :: w = 1 fi;
       if
       :: mine(w) && !gone[w] && !dead[w] && entry[w] == 0 && !(alive[o]) ->
            last = last + 1 + skips; skips = 0; at = w;
            to[o] = w; what[o] = last; alive[o] = true; asked = true
       :: else
       fi }
  :: atomic { asked && mine(at) && !gone[at] && entry[at] == last -> asked = false; busy = true }
#ifdef NO_SECOND_WRITE
  :: atomic { asked && mine(at) && !gone[at] && entry[at] != last -> asked = false }
#else
  /* The number was never there, and never comes: it is free. */
  :: atomic { asked && mine(at) && !gone[at] && entry[at] != last -> touch(at); asked = false; last-- }
#endif
  :: atomic { asked && gone[at] && dead[at] -> asked = false }
  /* The record: the attempt is open, or has ended. */
  :: atomic { busy && mark == version && rec < last && !ends ->
       rec = last; rec_open = true; version++; mark = version }
  :: atomic { busy && mark == version && (answer[at] == last || dead[at]) && !over ->
       rec = last; rec_open = false; version++; mark = version; busy = false }
  /* It takes the entry out, or stops it. */
  :: atomic { mine(at) && !gone[at] && entry[at] != 0 && answer[at] == entry[at] && mark == version &&
              (rec > entry[at] || (rec == entry[at] && !rec_open)) ->
       touch(at); entry[at] = 0; stops[at] = false }
  :: atomic { ends && mark == version && mine(at) && !gone[at] && entry[at] != 0 && !stops[at] ->
       touch(at); stops[at] = true }
  /* Somebody cancels the job: the mark, a read of all work Leases, the phase. */
#ifdef END_IN_ONE_WRITE
  :: atomic { mark == version && !over && !busy && !asked -> over = true; version++; mark = version }
#else
  :: atomic { mark == version && !ends && !over -> ends = true; version++; mark = version }
  :: atomic { mark == version && ends && !over && is_empty(0) -> read[0] = true }
  :: atomic { mark == version && ends && !over && is_empty(1) -> read[1] = true }
  :: atomic { mark == version && ends && !over && read[0] && read[1] ->
       assert(S1_OneOutcome || !over);
       over = true; version++; mark = version;
       assert(NothingAfterEnd || (child[0] == 0 && child[1] == 0)) }
#endif
  od
}

init {
  atomic { run network(); run worker(0); run worker(1); run owner(1); run owner(2) }
}
