/* Warm workers: the attempts of one run on the slots of two workers, with no assumption about time
   but one. docs/internals/workers.md is the protocol.

   Operators are any number, act whenever they like, and remember nothing. Their views have any age,
   and their writes may be paused for ever. None is a process here, because such a write is the same
   as one that is decided at the moment it is applied, if two things hold. The object that it changes
   has not changed since: compare-and-swap. And what it takes from other objects stays true:
   - each attempt on record was open once, so anybody may write its `run` at any time;
   - that the record has moved on from an attempt stays true;
   - an answer stays true, so `said` keeps whatever the worker Lease has ever said. As long as the
     attempt is open, its entry stays, and so does the answer. The version of the Lease that is cut
     off has it, too, but if it was deleted in between;
   - a cut-off and the mark of a drain are final;
   - a place that is known to be empty stays empty, so `vacant` keeps that.
   With REST `said` and `vacant` keep nothing: a decision needs only what is there at its moment.
   A lost write is one that does not come. A lost answer costs nothing, as nobody remembers the write.

   The assumption is what heartbeat.pml checks: a worker Lease stands still for a lease duration only
   if its agent has killed its children, is dead, or does not get to run. `fresh` says that the agent's
   last acknowledged renewal is younger than five sixths of the duration. It ends at any moment. Only
   an acknowledged renewal makes it true again: an agent that has killed its children may serve on.

   A renewal arrives at once or never. Later would be kinder: it says less than what is true by then,
   and it counts from when it was sent. The echo is left out. An operator that believes it to lag
   revokes the worker at any time.

   An agent hands back what it has not begun whenever it likes: it drains, or it was sent SIGTERM.

   FAULTS counts these, in any order: a container dies, and may start again in place, once; an agent
   freezes, and thaws; somebody deletes a Lease; an operator revokes a worker. A Lease that is made
   again has another UID. So it is another worker's, or none at all, and is left out. With DRAINS
   workers are scaled in.

   If an attempt is ended early, the record says so at once, and its child may still run. `waits`
   means that no attempt is open: Pending, Backoff, Cancelling. `over` is a phase that promises that
   nothing runs. A job that is deleted is as if its attempt were ended early and nothing came next.

   OUTLIVES_CUT_OFF and KEEP_ANSWERS keep state that changes nothing in the protocol itself.
   -DREST checks L2: see the end. The other macros in capitals, but for the bounds, are mutants;
   FROZEN takes away the premise. */

#ifndef ATTEMPTS
#define ATTEMPTS 2
#endif
#ifndef FAULTS
#define FAULTS 1
#endif
#ifndef DRAINS
#define DRAINS 1
#endif

/* Always false. A failed assertion is printed with its text, and so tells the rule's name. With
   ONE_PLACE only S22 is asked: some mutants break another rule a step earlier. */
#ifdef ONE_PLACE
#define HELD true
#else
#define HELD false
#endif
bool S22_OnePlace;
bool S1_OneOutcome = HELD, S2_FencedOutcome = HELD, S3_Fence = HELD, S4_StopStays = HELD,
    S8_Budget = HELD, NothingAfterEnd = HELD, OutcomeUnseen = HELD, DrainCostsNothing = HELD;

mtype = {waits, open, over};                /* the run */
mtype = {none, runs, stop};                 /* an entry; `run` is a keyword here */
mtype = {looked, running, stopped, ended, returned}; /* what an agent did with one, or none */
mtype = {own, revoked, cut, gone};          /* a worker Lease's holder; or the Lease is gone */
mtype = {up, frozen, dead, removed};        /* a worker's process; removed: as scale-in's last step */

/* What an answer said. */
#define STOPPED 1
#define ENDED 2
#define RETURNED 4

/* The job. */
byte attempt;
mtype state = waits;
byte place[ATTEMPTS + 1];

/* The work Leases, with an entry for each attempt of theirs. */
mtype entry[ATTEMPTS + 1] = none;
bool drains[2];
bool work_gone[2];

/* The worker Leases. */
mtype lease[2] = own;
byte mark[2];                               /* the process that serves, 0: none yet */
byte said[ATTEMPTS + 1];
bool wiped[2];                              /* it was deleted with all answers */

/* The agents. */
mtype process[2] = up;
byte life[2] = 1;
bool fresh[2];
mtype known[ATTEMPTS + 1] = none;           /* the entry, as its agent read it last */
mtype did[ATTEMPTS + 1] = none;

byte faults;
bool calm;                                  /* only with REST: no more faults */

/* Ghosts of the current attempt. */
bool begun;
bool result;                                /* its child ended by itself, while it was open */
bool vacant = true;                         /* its place is known to be empty */

byte k; /* scratch */

/* A child counts while its agent gets to run. */
#ifdef FROZEN
#define child_runs(a) (did[a] == running)
#else
#define child_runs(a) (did[a] == running && process[place[a]] == up)
#endif
#if ATTEMPTS > 2
#define children (child_runs(1) + child_runs(2) + child_runs(3))
#else
#define children (child_runs(1) + child_runs(2))
#endif

/* ---- The job's record. */

#define at place[attempt]
#define moved_on(a) (a < attempt || state != open)

inline job_is(next) {
  assert(S1_OneOutcome || state != over);
  state = next;
  printf("API server: attempt %d of the job: %e\n", attempt, state);
  assert(NothingAfterEnd || state != over || children == 0)
}

/* The attempt on record has ended. What became of it is no news now. */
inline is_old_news() {
#ifndef KEEP_ANSWERS
  did[attempt] = (did[attempt] == stopped || did[attempt] == ended -> returned : did[attempt]);
  said[attempt] = (said[attempt] == 0 -> 0 : RETURNED);
#endif
  result = false
}

/* Its place is empty. Its entry may leave as if it were answered. */
inline is_left() {
  is_old_news();
  said[attempt] = said[attempt] | RETURNED;
  vacant = true; begun = false
}

inline goes_on() {
  if
  :: attempt < ATTEMPTS -> job_is(waits)
  :: job_is(over)
  fi
}

inline ends() {
  assert(S8_Budget || state == open);
#ifdef REST
  is_old_news();
  job_is(waits)
#else
  is_left();
  goes_on()
#endif
}

inline hands_back() {
  assert(S8_Budget || !begun);
  ends()
}

inline is_lost() {
  assert(OutcomeUnseen || wiped[at] || !(said[attempt] & ENDED));
  assert(DrainCostsNothing || work_gone[at] || process[at] != removed);
  ends()
}

#ifdef NO_COMPARE
#define may_end (attempt > 0)
#else
#define may_end (state == open)
#endif
#ifdef LATE_END
#define may_have_outcome (state == open || (state == waits && !vacant))
#else
#define may_have_outcome may_end
#endif
#ifdef OLD_ANSWER
#define says_ended (said[attempt] & ENDED || \
                    (attempt > 1 && place[attempt - 1] == at && said[attempt - 1] & ENDED))
#else
#define says_ended (said[attempt] & ENDED)
#endif
#ifdef REVOKED_IS_CUT
#define is_cut(w) (lease[w] == cut || lease[w] == revoked)
#else
#define is_cut(w) (lease[w] == cut)
#endif
/* The agent never saw a `run`, and never will. */
#ifdef HANDED_BACK_BY_OLD_VIEW
#define no_entry_came (drains[at] || is_cut(at))
#elif defined(NEW_LEASE_HAD_NO_ENTRY)
#define no_entry_came (entry[attempt] == none && (drains[at] || is_cut(at)))
#else
#define no_entry_came (entry[attempt] == none && !work_gone[at] && (drains[at] || is_cut(at)))
#endif
/* The worker will say nothing more, and has not said what became of the attempt. */
#ifdef LOST_BY_OLD_ANSWERS
#define no_answer_comes is_cut(at)
#else
#define no_answer_comes (is_cut(at) && (said[attempt] == 0 || wiped[at]))
#endif
/* Its entry has left with its answer, or never was. If one comes now, its agent finds the end. */
#ifdef EMPTY_BY_OLD_VIEW
#define no_entry_is_left true
#elif defined(EMPTY_WITHOUT_LEASE)
#define no_entry_is_left (entry[attempt] == none)
#elif defined(EMPTY_BY_ANSWER_ONLY)
#define no_entry_is_left false
#else
#define no_entry_is_left (entry[attempt] == none && !work_gone[at])
#endif
#define seems_vacant (said[attempt] != 0 || is_cut(at) || no_entry_is_left)
#ifdef REST
#define is_vacant (attempt == 0 || seems_vacant)
#else
#define is_vacant vacant
#endif
#ifdef OPEN_EARLY
#define may_open true
#else
#define may_open is_vacant
#endif

proctype job() {
end:
  do
  /* The intent: an attempt and its place, which may be cut off by then. The workers are alike. */
  :: atomic { state == waits && attempt < ATTEMPTS && may_open ->
       is_left();
       k = attempt;
#ifdef REUSE_NUMBER
       if
       :: attempt == 0 || entry[attempt] == none -> attempt++
       :: else
       fi;
#else
       attempt++;
#endif
       assert(S3_Fence || attempt == k + 1);
       k = 0;
       vacant = false;
       if
       :: place[attempt] = 0
       :: attempt > 1 -> place[attempt] = 1
       fi;
       printf("operator: attempt %d has its place at worker %d\n", attempt, at);
       job_is(open) }
  /* Cancel, suspend, a deadline, no progress. Once faults have stopped, no child ends otherwise. */
  :: atomic { state == open && (!calm || did[attempt] == running) ->
       printf("operator: ends attempt %d early\n", attempt);
       is_old_news();
       job_is(waits) }
#ifndef REST
  :: atomic { state == waits && !vacant && seems_vacant ->
       printf("operator: the place of attempt %d is empty\n", attempt);
       is_left();
       goes_on() }
#else
  :: atomic { state == waits && is_vacant -> job_is(over) }
#endif
#ifdef OVER_EARLY
  :: atomic { state == waits -> job_is(over) }
#endif
  :: atomic { may_have_outcome && says_ended ->
       printf("operator: records the outcome of attempt %d\n", attempt);
       assert(S2_FencedOutcome || result);
       ends() }
  :: atomic { may_end && said[attempt] & STOPPED ->
       printf("operator: attempt %d was stopped\n", attempt);
       ends() }
  :: atomic { may_end && said[attempt] & RETURNED ->
       printf("operator: attempt %d was handed back\n", attempt);
       hands_back() }
  :: atomic { may_end && no_entry_came ->
       printf("operator: attempt %d had no entry\n", attempt);
       hands_back() }
  :: atomic { may_end && no_answer_comes && !no_entry_came ->
       printf("operator: attempt %d is lost\n", attempt);
       is_lost() }
#ifdef LOST_BEFORE_CUT_OFF
  :: atomic { may_end && process[at] == dead ->
       printf("operator: the pod of attempt %d has ended\n", attempt);
       is_lost() }
#endif
  od
}

/* ---- The entries. */

/* That the record has moved on stays true, so it may be a view of any age. What is written for a
   worker that is cut off reaches nobody. */
#define writable(w) (!work_gone[w] && lease[w] != cut)
#ifdef ENTRY_BEFORE_INTENT
#define may_have_entry(a) (a <= attempt + 1)
#else
#define may_have_entry(a) (a <= attempt)
#endif
#ifdef STOP_TAKEN_BACK
#define may_run(a) (entry[a] != runs)
#else
#define may_run(a) (entry[a] == none)
#endif
#ifdef DRAIN_IGNORED
#define takes_entries(w) true
#else
#define takes_entries(w) (!drains[w])
#endif
#ifdef NEVER_STOPS
#define may_stop(a) false
#else
#define may_stop(a) moved_on(a)
#endif
#ifdef LEAVES_WITH_ANSWER
#define may_leave(a) (said[a] != 0)
#elif defined(LEAVES_WITH_RECORD)
#define may_leave(a) moved_on(a)
#else
#define may_leave(a) (moved_on(a) && said[a] != 0)
#endif

proctype entries(byte a) {
end:
  do
  :: atomic { may_have_entry(a) && may_run(a) && writable(place[a]) && takes_entries(place[a]) &&
              (!calm || (a == attempt && state == open)) ->
       printf("operator: entry of attempt %d: run\n", a);
       assert(S3_Fence || a <= attempt);
       assert(S4_StopStays || entry[a] != stop);
       entry[a] = runs }
  /* Once the place is empty, an old `run` is what can do more than an old `stop`. */
  :: atomic { entry[a] == runs && a == attempt && !vacant && writable(place[a]) && may_stop(a) ->
       printf("operator: entry of attempt %d: stop\n", a);
       entry[a] = stop }
  :: atomic { entry[a] != none && writable(place[a]) && may_leave(a) ->
       printf("operator: takes out the entry of attempt %d\n", a);
       assert(NothingAfterEnd || !child_runs(a));
       entry[a] = none }
  od
}

/* ---- The agents. */

#define serves(w) (process[w] == up && mark[w] == life[w])
#ifdef NO_LOOK
#define on_record(a) true
#elif defined(LOOK_AT_JOB_ONLY)
#define on_record(a) (state == open)
#elif defined(LOOK_AT_ATTEMPT_ONLY)
#define on_record(a) (a == attempt)
#else
#define on_record(a) (a == attempt && state == open)
#endif
#ifdef BEGIN_WITHOUT_RENEWAL
#define may_begin(w) true
#else
#define may_begin(w) fresh[w]
#endif
#ifdef RETURN_BEGUN
#define may_return(a) (did[a] == none || did[a] == looked || did[a] == running)
#else
#define may_return(a) (did[a] == none || did[a] == looked)
#endif
#ifdef FORGET_EARLY
#define may_forget(a) (known[a] == none || fresh[place[a]])
#else
#define may_forget(a) (known[a] == none)
#endif

proctype agent(byte a) {
end:
  do
  /* It reads the job live. */
  :: atomic { serves(place[a]) && known[a] == runs && did[a] == none ->
       if
       :: on_record(a) -> did[a] = looked
       :: else -> did[a] = returned
       fi;
       printf("agent %d: looks at the job for attempt %d: %e\n", place[a], a, did[a]) }
  :: atomic { serves(place[a]) && known[a] == runs && did[a] == looked && may_begin(place[a]) ->
       printf("agent %d: begins attempt %d\n", place[a], a);
       assert(NothingAfterEnd || state != over);
       assert(S22_OnePlace || (a == attempt && !begun && !vacant));
       begun = true; did[a] = running;
       assert(S22_OnePlace || children <= 1) }
  :: atomic { serves(place[a]) && did[a] == running && !calm ->
       printf("agent %d: the child of attempt %d has ended\n", place[a], a);
       did[a] = ended;
       result = result || (a == attempt && state == open) }
  :: atomic { serves(place[a]) && did[a] == running && known[a] == stop ->
       printf("agent %d: has stopped attempt %d\n", place[a], a);
       did[a] = stopped }
  :: atomic { serves(place[a]) && known[a] != none && may_return(a) &&
              (!calm || known[a] == stop || drains[place[a]]) ->
       printf("agent %d: hands attempt %d back\n", place[a], a);
       did[a] = returned }
  :: atomic { serves(place[a]) && may_forget(a) &&
              (did[a] == stopped || did[a] == ended || did[a] == returned) ->
       printf("agent %d: forgets attempt %d\n", place[a], a);
       did[a] = none }
  od
}

#ifdef KEEP_ANSWERS
#define is_news(a) (place[a] == w)
#define words(a, kind) kind
#else
#define is_news(a) (place[a] == w && a == attempt)
#define words(a, kind) (moved_on(a) -> RETURNED : kind)
#endif

inline say(a) {
  if
  :: did[a] == stopped -> said[a] = said[a] | words(a, STOPPED)
  :: did[a] == ended -> said[a] = said[a] | words(a, ENDED)
  :: did[a] == returned -> said[a] = said[a] | RETURNED
#ifdef REST
  :: else -> said[a] = 0
#else
  :: else
#endif
  fi
}

inline forget_all(w) {
  for (k : 1 .. ATTEMPTS) {
    if
    :: place[k] == w -> known[k] = none; did[k] = none
    :: else
    fi
  };
  k = 0
}

inline stop_children(w) {
  for (k : 1 .. ATTEMPTS) {
    if
    :: place[k] == w && did[k] == running -> did[k] = stopped
    :: else
    fi
  };
  k = 0
}

#ifdef REST
inline answers_vanish(w) {
  for (k : 1 .. ATTEMPTS) {
    if
    :: place[k] == w -> said[k] = 0
    :: else
    fi
  };
  k = 0
}
#endif

inline reads(w) {
  for (k : 1 .. ATTEMPTS) {
    if
    :: place[k] == w -> known[k] = entry[k]
    :: else
    fi
  };
  k = 0
}

inline entries_vanish(w) {
  for (k : 1 .. ATTEMPTS) {
    if
    :: place[k] == w -> entry[k] = none
    :: else
    fi
  };
  k = 0
}

#if ATTEMPTS > 2
#define has_entry(w) ((place[1] == w && entry[1] != none) || (place[2] == w && entry[2] != none) || \
                      (place[3] == w && entry[3] != none))
#define has_child(w) ((place[1] == w && did[1] == running) || (place[2] == w && did[2] == running) || \
                      (place[3] == w && did[3] == running))
#else
#define has_entry(w) ((place[1] == w && entry[1] != none) || (place[2] == w && entry[2] != none))
#define has_child(w) ((place[1] == w && did[1] == running) || (place[2] == w && did[2] == running))
#endif
#ifdef RESTARTED_SERVES
#define may_serve(w) true
#else
#define may_serve(w) (mark[w] == 0 || mark[w] == life[w])
#endif
#ifdef CUT_OFF_IS_NO_FENCE
#define may_write_lease(w) (lease[w] == own || lease[w] == cut)
#else
#define may_write_lease(w) (lease[w] == own)
#endif
#ifdef CUT_WITHOUT_VERSION
#define may_cut(w) true
#else
#define may_cut(w) (!fresh[w])
#endif
#ifdef REMOVED_WITH_ENTRY
#define may_remove(w) drains[w]
#else
#define may_remove(w) (drains[w] && !has_entry(w))
#endif

proctype worker(byte w) {
end:
  do
  :: d_step { serves(w) && !work_gone[w] && lease[w] != cut &&
              (!calm || (place[attempt] == w && known[attempt] != entry[attempt])) ->
       reads(w);
       printf("agent %d: reads its work Lease\n", w) }
  :: atomic { process[w] == up && !work_gone[w] && may_write_lease(w) && may_serve(w) &&
              (!calm || !fresh[w] || (at == w && (said[attempt] == 0) ==
                (did[attempt] == stopped || did[attempt] == ended || did[attempt] == returned))) ->
       printf("agent %d: renews\n", w);
       mark[w] = life[w];
       for (k : 1 .. ATTEMPTS) {
         if
         :: is_news(k) -> say(k)
         :: else
         fi
       };
       k = 0;
       if
       :: fresh[w] = true
       :: !calm -> printf("agent %d: has no answer to its renewal\n", w)
       fi }
  :: d_step { fresh[w] && (!calm || process[w] == frozen || work_gone[w] || lease[w] != own) ->
       printf("agent %d: its last renewal is old\n", w);
       fresh[w] = false;
       if
#ifndef NO_SELF_FENCE
       :: process[w] == up -> stop_children(w)
#endif
       :: else
       fi }
  :: d_step { (process[w] == up || process[w] == frozen) && lease[w] != cut && !calm &&
              faults < FAULTS ->
       printf("kubelet: the process of worker %d is dead\n", w);
       faults++;
       process[w] = dead; fresh[w] = false;
       forget_all(w) }
  :: d_step { process[w] == dead && life[w] == 1 && lease[w] != cut ->
       printf("kubelet: the container of worker %d starts again\n", w);
       process[w] = up; life[w] = 2 }
  :: d_step { process[w] == up && !calm && faults < FAULTS ->
       printf("kubelet: worker %d is frozen\n", w);
       faults++;
       process[w] = frozen }
  /* Its deadlines come first. */
  :: d_step { process[w] == frozen ->
       printf("kubelet: worker %d thaws\n", w);
       process[w] = up;
       if
#ifndef NO_DEADLINE_AT_THAW
       :: !fresh[w] -> stop_children(w)
#endif
       :: else
       fi;
       assert(S22_OnePlace || children <= 1) }
  /* ---- What operators do with a worker. */
#if DRAINS > 0
  :: d_step { !drains[w] && !work_gone[w] && lease[w] != cut && !calm ->
       printf("operator: worker %d shall drain\n", w);
       drains[w] = true }
  :: d_step { may_remove(w) && (process[w] == up || process[w] == frozen) && lease[w] != cut ->
       printf("operator: deletes the pod of worker %d\n", w);
       assert(DrainCostsNothing || work_gone[w] || !has_child(w));
       process[w] = removed; fresh[w] = false;
       forget_all(w) }
#endif
  :: d_step { lease[w] == own && !calm && faults < FAULTS ->
       printf("operator: revokes worker %d\n", w);
       faults++;
       lease[w] = revoked }
  :: d_step { (lease[w] == own || lease[w] == revoked) && may_cut(w) ->
       printf("operator: cuts worker %d off\n", w);
       lease[w] = cut;
#ifndef OUTLIVES_CUT_OFF
       /* Its agent can do nothing any more, but thaw. */
       mark[w] = 0; life[w] = 1;
       if
       :: process[w] == up -> process[w] = dead
       :: else
       fi;
       if
       :: process[w] != frozen -> forget_all(w)
       :: else
       fi
#endif
     }
  :: d_step { lease[w] == gone ->
       printf("operator: makes worker Lease %d again\n", w);
#ifdef MADE_WITH_HOLDER
       lease[w] = own; mark[w] = 0
#elif defined(MADE_AS_CUT_OFF)
       lease[w] = cut
#else
       lease[w] = revoked
#endif
     }
#ifdef WORK_MADE_AGAIN
  :: d_step { work_gone[w] -> printf("operator: makes work Lease %d again\n", w); work_gone[w] = false }
#endif
  /* ---- Somebody. */
  :: d_step { lease[w] != gone && !calm && faults < FAULTS ->
       printf("somebody: deletes worker Lease %d\n", w);
       faults++;
       wiped[w] = true;
#ifdef REST
       answers_vanish(w);
#endif
       if
       :: lease[w] != cut -> lease[w] = gone
       :: else /* made again, and again it has no holder */
       fi }
  /* The operator makes it again as long as no agent has marked the worker Lease. */
  :: d_step { !work_gone[w] && lease[w] != cut && !calm && faults < FAULTS ->
       printf("somebody: deletes work Lease %d\n", w);
       faults++;
#ifdef UNMARKED_IS_NEW
       work_gone[w] = (mark[w] != 0 && !wiped[w]);
#else
       work_gone[w] = (mark[w] != 0 || wiped[w] || process[w] == removed);
#endif
       drains[w] = false;
       entries_vanish(w) }
  od
}

#ifdef REST
proctype faults_stop() { calm = true }

/* Once faults stop the run ends. No fairness is needed: a run without faults has no cycle. */
ltl L2_Ends { [] (calm -> <> (state == over)) }
#endif

init {
  atomic {
    run job(); run worker(0); run worker(1);
    run entries(1); run agent(1); run entries(2); run agent(2);
#if ATTEMPTS > 2
    run entries(3); run agent(3);
#endif
#ifdef REST
    run faults_stop();
#endif
    skip
  }
}
