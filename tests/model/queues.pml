/* The jobs of one queue: who may start, also across take-overs, with no assumption about time.

   Two replicas act on the queue whenever they like, and both may believe that they own it.
   Admission is two writes. The first one puts the job into `admitting` in the queue's status. The
   second one is the job's intent. The owner counts what its caches show, as old as they like.

   Both stay in flight for any time, also when their sender has died or has lost the queue. They are
   applied, or refused because the object has changed meanwhile, and a refused one vanishes here.
   Answers are lost, and so is the memory of a replica. What a claim writes depends on the queue's
   version alone, so a late claim is the same as one that is decided when it arrives.

   Of all caches only an owner's matter, because every other write of the queue is refused. After
   its claim the owner does nothing until its caches have reached the claim's version. So that is
   where they begin here. From then on they go forward, each job by itself.

   Any replica reads the queue's status at any time. Who has read an admission may act on it until
   the job has another attempt, whoever owns the queue by then.

   Users may delete the queue and make it again. The owner, if it has the answer to its last write,
   then lives until it has claimed the new queue, and it is the first to do so. Without that
   (ANY_HEIR) a job may start on an admission that only the deleted status had. That is the gap
   which the docs describe.

   WAITS is Pending and Backoff, which do not differ here. RUNS is Running and, from there,
   Cancelling. How an attempt ends is job.pml's. The limit of a key is the same rule for fewer jobs.

   With STRICT all jobs have podReplacementPolicy Failed: a job that does not run any more keeps its
   permit until its pod has ended. Left out is a pod whose creation is applied after its attempt is
   over. It takes a permit that nobody gave.

   With SAME_CLAIM a claim that changes nothing raises no version, as when a replica claims a second
   time in its tenure. Then both replicas may own one version, once their caches have reached it.

   The other macros in capitals, but for the bounds, are mutants. */

#ifndef JOBS
#define JOBS 3
#endif
#ifndef CONCURRENCY
#define CONCURRENCY 1
#endif
#ifndef ATTEMPTS
#define ATTEMPTS 2
#endif
#ifndef SUSPENSIONS
#define SUSPENSIONS 1
#endif
#ifndef DELETIONS
#define DELETIONS 1
#endif
/* An attempt starts and ends. A suspension comes, may skip a number, and goes. The job ends. */
#define VERSIONS (2 * ATTEMPTS + 3 * SUSPENSIONS + 1)
#define NOBODY 2
#define NONE 15

bool S19_Permits, OutOfBounds;

/* A version of a job is a byte: its phase, and four times its attempt. */
#define WAITS 0
#define RUNS 1
#define SUSPENDED 2
#define OVER 3
#define phase(s) ((s) & 3)
#define attempt(s) ((s) >> 2)

/* What stands in the API server. */
typedef Job {
  byte version;
  byte was[VERSIONS + 1];
  bool intent;       /* in flight, and decided on the current version: no other would be applied */
#ifdef STRICT
  byte pod;          /* the version of its pods: odd while one lives */
  bool had_pod;      /* its current attempt */
  byte pod_of[VERSIONS + 1]; /* at the time of that version of the job */
#endif
}
Job job[JOBS];
bool there = true;   /* the queue */
byte admitting[JOBS];

typedef Replica {
  bool knows[JOBS];  /* it has read that the job is admitted after its current attempt */
  bool owns;         /* its claim stands, and none of its writes since then went unanswered */
  byte seen[JOBS];   /* its cache: the version of each job */
#ifdef STRICT
  byte seen_pod[JOBS];
#endif
}
Replica replica[2];

/* A write of the queue's status, in flight. */
typedef Write {
  bool sent;
  bool awaited;      /* its sender lives and waits for the answer */
  byte admitting[JOBS];
}
Write write[2];

byte suspensions, deletions;
byte heir = NOBODY;
#ifdef SAME_CLAIM
byte base[JOBS];     /* the jobs' versions when the queue was written last */
#endif

/* Scratch. */
byte k, permits;
bool changes;

#define now(j) job[j].was[job[j].version]
#define shown(i, j) job[j].was[replica[i].seen[j]]
/* An admission after attempt `a` does nothing any more, as this version of its job shows. */
#define obsolete(s, a) (phase(s) == OVER || attempt(s) > a)
#ifdef STRICT
#define has_pod(j) (phase(now(j)) != OVER && (job[j].pod & 1))
#define pod_is_down(j) (!(job[j].pod & 1))
#else
#define has_pod(j) false
#define pod_is_down(j) true
#endif

/* Permits that are held, and those that may be taken at any time by an admission on record. */
inline check_permits() {
  permits = 0;
  for (k : 0 .. JOBS - 1) {
    if
    :: phase(now(k)) == RUNS || has_pod(k) ||
       (admitting[k] != NONE && !obsolete(now(k), admitting[k])) -> permits++
    :: else
    fi
  };
  assert(S19_Permits || permits <= CONCURRENCY);
  permits = 0; k = 0
}

/* ---- Jobs. */

/* A new version: requests that were decided on the one before are refused. */
inline change(j, next_phase, next_attempt) {
  d_step {
    permits = next_phase + 4 * (next_attempt);
    if
    :: next_phase == OVER || next_attempt != attempt(now(j)) ->
#ifdef STRICT
       job[j].had_pod = false;
#endif
       replica[0].knows[j] = false; replica[1].knows[j] = false
    :: else
    fi;
    assert(OutOfBounds || job[j].version < VERSIONS);
    job[j].version++;
    job[j].was[job[j].version] = permits;
#ifdef STRICT
    job[j].pod_of[job[j].version] = job[j].pod;
#endif
    job[j].intent = false;
    printf("API server: job %d has phase %d, attempt %d\n", j, phase(permits), attempt(permits));
    check_permits()
  }
}

/* The last one of several attempts just ends: that gives the permit back as well. */
#define may_wait(s) (attempt(s) < ATTEMPTS || ATTEMPTS == 1)

inline job_moves(j) {
  if
  :: job[j].intent -> change(j, RUNS, attempt(now(j)) + 1)
  :: phase(now(j)) == RUNS -> change(j, OVER, 0)
  /* It failed or was lost, and starts again later or at once. */
  :: phase(now(j)) == RUNS && may_wait(now(j)) -> change(j, WAITS, attempt(now(j)))
  :: phase(now(j)) == RUNS && attempt(now(j)) < ATTEMPTS && pod_is_down(j) ->
     change(j, RUNS, attempt(now(j)) + 1)
  :: phase(now(j)) < SUSPENDED && may_wait(now(j)) && suspensions < SUSPENSIONS ->
     printf("user: suspends job %d\n", j);
     suspensions++;
     change(j, SUSPENDED, attempt(now(j)))
  :: phase(now(j)) == SUSPENDED ->
     printf("user: resumes job %d\n", j);
     change(j, WAITS, attempt(now(j)))
#ifdef CANCEL_TAKES_A_PERMIT
  /* Cancelling, because a pod of it is still there. */
  :: phase(now(j)) == WAITS && attempt(now(j)) > 0 && suspensions < SUSPENSIONS ->
     printf("user: cancels job %d\n", j);
     suspensions++;
     change(j, RUNS, attempt(now(j)))
#endif
  /* Cancelled, deleted, or out of time. */
  :: phase(now(j)) == WAITS && pod_is_down(j) -> change(j, OVER, 0)
#ifdef STRICT
  :: phase(now(j)) == RUNS && !job[j].had_pod ->
     printf("API server: job %d has a pod\n", j);
     job[j].had_pod = true; job[j].pod++
  :: job[j].pod & 1 -> printf("kubelet: job %d has no pod any more\n", j); job[j].pod++
#endif
  fi
}

/* ---- The queue's status. */

inline loses(r) {
  replica[r].owns = false;
  for (k : 0 .. JOBS - 1) {
#ifdef STRICT
    replica[r].seen_pod[k] = 0;
#endif
    replica[r].seen[k] = 0
  };
  k = 0
}

inline vanishes(r) {
  write[r].sent = false; write[r].awaited = false;
  for (k : 0 .. JOBS - 1) { write[r].admitting[k] = NONE };
  k = 0
}

/* A write of replica i is applied: whatever others have in flight is refused. */
inline queue_written(i) {
  check_permits();
  heir = NOBODY;
  vanishes(i);
#ifndef NO_COMPARE
  vanishes(1 - i);
  loses(1 - i);
#endif
#ifdef SAME_CLAIM
  for (k : 0 .. JOBS - 1) { base[k] = job[k].version };
  k = 0
#endif
}

inline reads_queue(i) {
  for (k : 0 .. JOBS - 1) {
    if
    :: phase(now(k)) != OVER && admitting[k] == attempt(now(k)) -> replica[i].knows[k] = true
    :: else
    fi
  };
  k = 0
}

/* The admissions that are on record stay, and those of a deleted queue are put on record again. */
inline keep_admissions(i) {
  for (k : 0 .. JOBS - 1) {
#ifdef FORGET_OTHERS
    admitting[k] = NONE;
#endif
    if
    :: replica[i].knows[k] && (admitting[k] == NONE || obsolete(now(k), admitting[k])) ->
       admitting[k] = attempt(now(k)); changes = true
    :: else
    fi
  };
  k = 0
}

/* Any replica at any time; not a second time while the first stands. */
#ifdef ANY_HEIR
#define may_claim(i) (there && !replica[i].owns)
#else
#define may_claim(i) (there && !replica[i].owns && (heir == NOBODY || heir == i))
#endif

inline claim(i) {
  d_step {
    printf("replica %d: claims the queue\n", i);
#ifdef SAME_CLAIM
    changes = (heir != NOBODY); /* a new queue names no holder */
#else
    changes = true;
#endif
#ifndef COUNT_WITHOUT_CLAIM
    keep_admissions(i);
    if
    :: changes -> queue_written(i)
    :: else -> heir = NOBODY
    fi;
#endif
    changes = false
  };
  if
  :: d_step {
       reads_queue(i);
       replica[i].owns = true;
#if !defined(COUNT_EARLY) && !defined(COUNT_WITHOUT_CLAIM)
       for (k : 0 .. JOBS - 1) {
#ifdef STRICT
         replica[i].seen_pod[k] = job[k].pod;
#endif
#ifdef SAME_CLAIM
         replica[i].seen[k] = base[k]
#else
         replica[i].seen[k] = job[k].version
#endif
       };
       k = 0
#endif
     }
  :: printf("replica %d: has no answer\n", i)
  fi
}

#ifdef DROP_EARLY
#define may_drop(s, a) true
#elif defined(DROP_SUSPENDED)
#define may_drop(s, a) (obsolete(s, a) || phase(s) == SUSPENDED)
#else
#define may_drop(s, a) obsolete(s, a)
#endif
#ifdef FREE_IN_RUNNING
#define holds_permit(s) false
#else
#define holds_permit(s) (phase(s) == RUNS)
#endif

#define drops(i, j) (admitting[j] != NONE && may_drop(shown(i, j), admitting[j]))
#ifdef STRICT
/* A pod that the cache does not show may be one that it does not show yet. */
#ifdef PODS_LAG
#define shows_all_pods(i, j) true
#else
#define shows_all_pods(i, j) (replica[i].seen_pod[j] >= job[j].pod_of[replica[i].seen[j]])
#endif
#define keeps_for_pod(i, j) (phase(shown(i, j)) != OVER && \
                             ((replica[i].seen_pod[j] & 1) || !shows_all_pods(i, j)))
#else
#define keeps_for_pod(i, j) false
#endif
#define uses(i, j) (holds_permit(shown(i, j)) || keeps_for_pod(i, j) || \
                    (admitting[j] != NONE && !drops(i, j)))
#if JOBS > 2
#define used(i) (uses(i, 0) + uses(i, 1) + uses(i, 2))
#define drops_any(i) (drops(i, 0) || drops(i, 1) || drops(i, 2))
#else
#define used(i) (uses(i, 0) + uses(i, 1))
#define drops_any(i) (drops(i, 0) || drops(i, 1))
#endif
#define asks(i, j) (phase(shown(i, j)) == WAITS && attempt(shown(i, j)) < ATTEMPTS && !uses(i, j))
#define may_write(i) (replica[i].owns && !write[i].sent)

/* One write: obsolete admissions leave, and job j is admitted, or none (JOBS). */
inline send_admission(i, j) {
  d_step {
    for (k : 0 .. JOBS - 1) {
      if
      :: drops(i, k) -> printf("replica %d: drops job %d\n", i, k)
      :: else -> write[i].admitting[k] = admitting[k]
      fi;
      if
      :: k == j ->
         printf("replica %d: admits job %d after attempt %d\n", i, k, attempt(shown(i, k)));
         write[i].admitting[k] = attempt(shown(i, k))
      :: else
      fi
    };
    k = 0;
    write[i].sent = true; write[i].awaited = true
  }
}

inline admission_arrives(i) {
  d_step {
    printf("API server: the admission of replica %d is applied\n", i);
    for (k : 0 .. JOBS - 1) { admitting[k] = write[i].admitting[k] };
    k = 0;
    changes = write[i].awaited;
    queue_written(i)
  };
  if
  :: d_step { changes -> reads_queue(i); changes = false }
  :: d_step { printf("replica %d: has no answer\n", i); loses(i); changes = false }
  fi
}

#ifdef START_UNASKED
#define is_admitted(i, j) (attempt(now(j)) < ATTEMPTS)
#elif defined(START_BEFORE_ANSWER)
#define is_admitted(i, j) (replica[i].knows[j] || write[i].admitting[j] == attempt(now(j)))
#else
#define is_admitted(i, j) replica[i].knows[j]
#endif
#define may_start(i, j) (phase(now(j)) == WAITS && is_admitted(i, j) && pod_is_down(j))

inline handle(i, j) {
  if
  :: replica[i].owns && replica[i].seen[j] < job[j].version -> replica[i].seen[j]++
#ifdef STRICT
  :: replica[i].owns && replica[i].seen_pod[j] < job[j].pod -> replica[i].seen_pod[j]++
#endif
  :: may_write(i) && asks(i, j) && used(i) < CONCURRENCY -> send_admission(i, j)
  :: may_start(i, j) && !job[j].intent ->
     printf("replica %d: sends the intent of job %d\n", i, j);
     job[j].intent = true
#ifndef DROP_SUSPENDED
  /* The job gives back what it does not use: the admission's attempt never comes. */
  :: phase(now(j)) == SUSPENDED && replica[i].knows[j] ->
     printf("replica %d: skips an attempt of job %d\n", i, j);
     change(j, SUSPENDED, attempt(now(j)) + 1)
#endif
  fi
}

proctype owner(byte i) {
end:
  do
  :: atomic { may_claim(i) -> claim(i) }
  :: atomic { handle(i, 0) }
  :: atomic { handle(i, 1) }
#if JOBS > 2
  :: atomic { handle(i, 2) }
#endif
  :: atomic { may_write(i) && drops_any(i) -> send_admission(i, JOBS) }
  :: atomic { write[i].sent -> admission_arrives(i) }
  :: d_step { write[i].awaited ->
       printf("replica %d: waits no longer for an answer\n", i);
       write[i].awaited = false;
       loses(i) }
  :: d_step { there && !replica[i].owns -> reads_queue(i) }
  /* Crash and restart: requests live on, memory does not. */
  :: d_step { heir != i ->
       printf("replica %d: crashes and starts anew\n", i);
       for (k : 0 .. JOBS - 1) { replica[i].knows[k] = false };
       k = 0;
       write[i].awaited = false;
       loses(i) }
  od
}

proctype world() {
end:
  do
  :: atomic { job_moves(0) }
  :: atomic { job_moves(1) }
#if JOBS > 2
  :: atomic { job_moves(2) }
#endif
#if DELETIONS > 0
  :: d_step { there && deletions < DELETIONS && (replica[0].owns || replica[1].owns) ->
       printf("user: deletes the queue\n");
       deletions++;
       heir = (replica[0].owns -> 0 : 1); /* if both own it, they know the same */
       there = false;
       for (k : 0 .. JOBS - 1) {
#ifdef FORGET_DELETED
         replica[heir].knows[k] = false;
#endif
         admitting[k] = NONE
       };
       k = 0;
       vanishes(0); vanishes(1);
       loses(0); loses(1) }
  :: d_step { !there -> printf("user: makes the queue again\n"); there = true }
#endif
  od
}

init {
  atomic {
    for (k : 0 .. JOBS - 1) { admitting[k] = NONE };
    k = 0;
    vanishes(0); vanishes(1);
    run owner(0); run owner(1); run world()
  }
}
