/* A job of many runs: which runs are open, which are over, and the budgets, with no assumption about
   time. How one attempt comes to its end is job.pml's; here many share each status write.

   Two replicas act on the job at once and whenever they like. A status write says for each run what
   becomes of it: several ends, and the runs that open instead of them. It is decided on one view,
   and it may be paused for ever, be lost, or be applied with its answer lost. After it each open
   run's pod is created by itself, in any order, and a crash may come in between: any number of the
   pods exist then.

   As in job.pml every verdict of a loss may be premature, so a lost attempt's pod may run on and
   succeed; a write from an old view vanishes where its resourceVersion would be refused.

   The macros in capitals, but for the bounds, are mutants. */

#ifndef RUNS
#define RUNS 3
#endif
#ifndef PARALLELISM
#define PARALLELISM 2
#endif
#ifndef BACKOFF_LIMIT
#define BACKOFF_LIMIT 0
#endif
#ifndef DISRUPTION_LIMIT
#define DISRUPTION_LIMIT 0
#endif
/* No run opens on a spent budget: each has its first attempt, one for each failure that is forgiven,
   and one for each loss. */
#define ATTEMPTS (RUNS + BACKOFF_LIMIT + RUNS * DISRUPTION_LIMIT)
#define NOBODY 2

bool S2_FencedOutcome, S3_Fence, S6_OnePod, S8_Budget, S16_RunOnce, S17_Parallelism;

/* A run. `waits` has begun, and its last attempt has ended. */
mtype = {fresh, open, waits, completed};
mtype = {absent, runs, succeeded, failed};
/* What a write says of a run. */
mtype = {stays, opens, succeeds, fails, is_lost};

typedef Write {
  bool sent;
  mtype says[RUNS];
  bool opens_again[RUNS]; /* in the same write as its end */
}

/* What stands in the API server. */
mtype state[RUNS] = fresh;
byte attempt_of[RUNS], lost[RUNS];
byte attempt, failures;
bool over;                /* FailureTarget is on record: nothing opens */
byte writer[ATTEMPTS + 1];
mtype pod[ATTEMPTS + 1] = absent;
bool creates[ATTEMPTS + 1];

Write write[2];

/* Ghosts. */
byte successes[RUNS];     /* how often each run was counted as succeeded */
byte ends[ATTEMPTS + 1];  /* how often each attempt's end was counted */
bool pod_was[ATTEMPTS + 1];
byte open_now, due;       /* scratch */

#define spent(r) (lost[r] > DISRUPTION_LIMIT)
#define may_open(r) (!over && failures <= BACKOFF_LIMIT && !spent(r))

inline count_open() {
  open_now = 0;
  for (r : 0 .. RUNS - 1) {
    if
    :: state[r] == open -> open_now++
    :: else
    fi
  }
}

inline drop_writes() {
#ifndef NO_COMPARE
  for (r : 0 .. 1) { write[r].sent = false };
  for (r : 0 .. RUNS - 1) {
    write[0].says[r] = stays; write[1].says[r] = stays;
    write[0].opens_again[r] = false; write[1].opens_again[r] = false
  }
#else
  write[i].sent = false;
  for (r : 0 .. RUNS - 1) { write[i].says[r] = stays; write[i].opens_again[r] = false }
#endif
}

inline count_end(r) {
  ends[attempt_of[r]]++;
  assert(S8_Budget || ends[attempt_of[r]] == 1)
}

inline open_run(r) {
  assert(S8_Budget || (failures <= BACKOFF_LIMIT && !spent(r) && !over));
  assert(S16_RunOnce || successes[r] == 0);
#ifdef ONE_NUMBER_A_WRITE
  if
  :: due == 0 -> attempt++
  :: else
  fi;
#else
  attempt++;
#endif
  due++;
  assert(S3_Fence || writer[attempt] == NOBODY);
  writer[attempt] = i;
  attempt_of[r] = attempt;
  state[r] = open
}

/* All ends first, then what opens: both as the write's view had them. */
inline apply_status(i) {
  d_step {
    printf("API server: the write of replica %d is applied\n", i);
    due = 0;
    for (r : 0 .. RUNS - 1) {
      if
      :: write[i].says[r] == succeeds ->
         assert(S16_RunOnce || successes[r] == 0);
         assert(S2_FencedOutcome || pod[attempt_of[r]] == succeeded);
         count_end(r);
         successes[r]++;
         state[r] = completed
      :: write[i].says[r] == fails ->
         count_end(r); failures++; state[r] = waits
      :: write[i].says[r] == is_lost ->
         count_end(r); lost[r]++; state[r] = waits;
         if
         :: spent(r) -> over = true
         :: else
         fi
      :: else
      fi
    };
    if
    :: failures > BACKOFF_LIMIT -> over = true
    :: else
    fi;
    for (r : 0 .. RUNS - 1) {
      if
      :: write[i].says[r] == opens || write[i].opens_again[r] -> open_run(r)
      :: else
      fi
    };
    count_open();
    assert(S17_Parallelism || open_now <= PARALLELISM);
    open_now = 0; due = 0;
    drop_writes();
    r = 0
  }
}

/* One run after the other: it ends as its pod did, or is called lost, or stays. */
inline choose_end(i, r) {
  if
  :: true
  :: state[r] == open && pod[attempt_of[r]] == succeeded -> write[i].says[r] = succeeds
  :: state[r] == open && pod[attempt_of[r]] == failed -> write[i].says[r] = fails
  :: state[r] == open && (pod[attempt_of[r]] == runs || pod[attempt_of[r]] == absent) ->
     write[i].says[r] = is_lost
#ifdef COUNT_AGAIN
  :: state[r] == waits && pod[attempt_of[r]] == failed -> write[i].says[r] = fails
#endif
#ifdef SUCCESS_OF_ANY
  :: state[r] == open && attempt_of[r] > 1 && pod[attempt_of[r] - 1] == succeeded ->
     write[i].says[r] = succeeds
#endif
  fi
}

#ifdef IGNORE_BUDGET
#define budget_left(r) (!over)
#else
#define budget_left(r) (may_open(r) && failures + due <= BACKOFF_LIMIT && !spends_last(r))
#endif
#define spends_last(r) (write[i].says[r] == is_lost && lost[r] + 1 > DISRUPTION_LIMIT)
#ifdef FORGET_COMPLETED
#define is_idle(r) (state[r] == fresh || state[r] == waits || state[r] == completed)
#else
#define is_idle(r) (state[r] == fresh || state[r] == waits)
#endif

/* `due`: the failures that this write counts. `open_now`: the runs that stay open. The write fails
   the whole job when some run is spent: then nothing opens. */
inline decide(i) {
  d_step {
    due = 0; open_now = 0;
    for (r : 0 .. RUNS - 1) {
      if
      :: write[i].says[r] == fails -> due++
      :: write[i].says[r] == is_lost && lost[r] + 1 > DISRUPTION_LIMIT ->
         due = due + BACKOFF_LIMIT + 1
      :: else
      fi;
      if
      :: state[r] == open && write[i].says[r] == stays -> open_now++
      :: else
      fi
    }
#ifdef ENDS_LEAVE_NO_ROOM
    ;
    open_now = 0
#endif
    ;
    r = 0
  }
}

inline choose_start(i, r) {
  if
  :: true
  :: open_now < PARALLELISM && budget_left(r) && is_idle(r) ->
     write[i].says[r] = opens; open_now++
  :: open_now < PARALLELISM && budget_left(r) &&
     (write[i].says[r] == fails || write[i].says[r] == is_lost) ->
     write[i].opens_again[r] = true; open_now++
  fi
}

proctype replica(byte i) {
  byte r;
end:
  do
  :: atomic { !write[i].sent ->
       choose_end(i, 0); choose_end(i, 1);
#if RUNS > 2
       choose_end(i, 2);
#endif
       decide(i);
       choose_start(i, 0); choose_start(i, 1);
#if RUNS > 2
       choose_start(i, 2);
#endif
       open_now = 0; due = 0;
       printf("replica %d: decides %e %e\n", i, write[i].says[0], write[i].says[1]);
       write[i].sent = (write[i].says[0] != stays || write[i].says[1] != stays
#if RUNS > 2
                        || write[i].says[2] != stays
#endif
                       ) }
  :: atomic { write[i].sent -> apply_status(i) }
  /* It is lost, or its sender dies. */
  :: atomic { write[i].sent ->
       write[i].sent = false;
       for (r : 0 .. RUNS - 1) { write[i].says[r] = stays; write[i].opens_again[r] = false };
       r = 0 }
  od
}

/* Who wrote an intent asks for its pod, once or again. The request may be lost, late, or come twice;
   its sender may die before it asks for the others. */
inline pod_moves(a) {
  if
  :: writer[a] != NOBODY && a <= attempt && !creates[a] && !pod_was[a] -> creates[a] = true
  :: creates[a] && pod[a] == absent && !pod_was[a] ->
     pod[a] = runs; pod_was[a] = true; creates[a] = false
  :: creates[a] -> creates[a] = false
  :: pod[a] == runs -> pod[a] = succeeded
  :: pod[a] == runs -> pod[a] = failed
  :: pod[a] != absent && ends[a] > 0 -> pod[a] = absent
  fi
}

proctype world() {
end:
  do
  :: atomic { pod_moves(1) }
  :: atomic { pod_moves(2) }
#if ATTEMPTS > 2
  :: atomic { pod_moves(3) }
#endif
#if ATTEMPTS > 3
  :: atomic { pod_moves(4) }
#endif
#if ATTEMPTS > 4
  :: atomic { pod_moves(5) }
#endif
  od
}

init {
  byte a;
  atomic {
    for (a : 0 .. ATTEMPTS) { writer[a] = NOBODY };
    a = 0;
    for (a : 0 .. RUNS - 1) {
      write[0].says[a] = stays; write[1].says[a] = stays
    };
    a = 0;
    run replica(0); run replica(1); run world()
  }
}
