/* A job with `heartbeat`: its Lease is handed from one attempt's pod to the next, and the agents
   in the pods fence themselves. What is asked: the child of an old attempt never runs beside its
   successor's, whatever is lost or late, as long as agents get to run.

   The hand-over has two steps. The Lease is taken: holder emptied, attempt raised. From then on
   the old agent's renewals are refused. It is granted to the current attempt's pod once the last
   pod that was GRANTED it (kept in the Lease) is known to have stopped, or a full lease duration
   has passed on one observer's clock. Agents count from when their last acknowledged renewal was
   SENT, and have killed the child by five sixths of the duration.

   Agents' clocks are as slow and operators' as fast as the premise allows (FAST/SLOW is
   lease/kill); any other pair only waits longer. Time goes by in ticks, and anything may happen
   between two of them. A write that the Lease changed under is refused by its resourceVersion:
   such requests vanish. A renewal arrives at once or never: later would be kinder. Verdicts may
   come at any moment, premature or not; nodes may vanish with the child running on.

   Somebody deletes the Lease, once. It is made anew for the current attempt and given to nobody, and
   nobody knows who was granted it last. An agent takes a missing Lease for no renewal and no refusal.

   The macros in capitals, but for the bounds, are mutants; FROZEN takes away the premise. */

#ifndef SLOW
#define SLOW 5 /* an agent's clock in a tick */
#endif
#ifndef FAST
#define FAST 6 /* an operator's */
#endif
#ifndef LEASE
#define LEASE 30 /* lease duration */
#endif
#define FENCE (LEASE * 2 / 3) /* SIGTERM */
#define KILL (LEASE * 5 / 6)  /* SIGKILL */
#define ATTEMPTS 3
#define NOBODY 0
#define UNKNOWN (ATTEMPTS + 1)

/* Always false. A failed assertion is printed with its text, and so tells the rule's name. */
bool S3_Fence, S14_SelfFence, S15_Exclusion;

mtype = {absent, unbound, bound, ended}; /* a pod, as its object says; ended: by its own status */
mtype = {none, take, grant, make};       /* a write on the Lease, on its way */

/* What stands in the API server. */
byte attempt = 1;
byte holder = NOBODY, transitions = 1;   /* the Lease: made for attempt 1, given to nobody */
byte granted = NOBODY;                   /* its annotation: the last pod that was granted it */
bool there = true, deleted = false;      /* it exists; somebody has deleted it */
mtype pod[ATTEMPTS + 1] = absent;

bool made[ATTEMPTS + 1];                 /* a pod of this attempt exists or has existed */

mtype request[2] = none;                 /* of each operator replica */
byte request_attempt[2];
byte waited[2];                          /* own clock since it saw the Lease taken */

/* The agent of each pod. */
bool child[ATTEMPTS + 1];                /* its process tree runs */
bool over[ATTEMPTS + 1];                 /* fenced, or the child has ended: starts none again */
byte age[ATTEMPTS + 1], really[ATTEMPTS + 1];
bool renewing[ATTEMPTS + 1];             /* applied, the answer is on its way */
byte renewal_age[ATTEMPTS + 1];

inline lease_changes() {
  request[0] = none; request[1] = none; request_attempt[0] = 0; request_attempt[1] = 0
}

inline stop_child(a) {
  d_step { child[a] = false; over[a] = true; renewing[a] = false; renewal_age[a] = 0;
           age[a] = 0; really[a] = 0 }
}

proctype somebody() {
end:
  do
  :: atomic { there && !deleted && granted != NOBODY ->
       printf("somebody: deletes the Lease\n");
       there = false; deleted = true; holder = NOBODY;
       lease_changes() }
  od
}

/* Read live: never bound, or its container has ended. That it is gone would prove nothing. */
#ifdef GRANT_AT_ONCE
#define stopped(a) true
#else
#define stopped(a) (pod[a] == unbound || pod[a] == ended)
#endif
#ifdef LOOK_AT_LAST_ATTEMPT
#define before_me(a) (a - 1)
#else
#define before_me(a) granted
#endif

proctype operator(byte i) {
end:
  do
  /* Ends an attempt, whether its child runs or not: the job's own compare-and-swap. */
  :: atomic { attempt < ATTEMPTS && i == 0 ->
       attempt++;
#ifdef WAIT_FROM_VERDICT
       waited[0] = 0; waited[1] = 0;
#endif
       printf("operator: attempt %d is on record\n", attempt) }
  :: atomic { i == 0 && pod[attempt] == absent &&
#ifndef POD_MADE_AGAIN
              !made[attempt] &&
#endif
              !over[attempt] && !child[attempt] ->
       pod[attempt] = unbound; made[attempt] = true;
       printf("operator: pod %d is created\n", attempt) }
#ifndef ONE_STEP
  :: atomic { request[i] == none && there && transitions < attempt ->
       request[i] = take; request_attempt[i] = attempt }
#endif
  :: atomic { request[i] == none && !there && pod[attempt] != absent ->
       request[i] = make; request_attempt[i] = attempt }
  :: atomic { request[i] == none && there &&
#ifdef ONE_STEP
              (holder == NOBODY || transitions < attempt) &&
#else
              holder == NOBODY && transitions == attempt &&
#endif
              pod[attempt] != absent &&
              (before_me(attempt) == NOBODY || before_me(attempt) == attempt ||
               (before_me(attempt) != UNKNOWN && stopped(before_me(attempt))) ||
               waited[i] >= LEASE) ->
       request[i] = grant; request_attempt[i] = attempt }
  :: atomic { request[i] == take ->
       printf("API server: the Lease is taken from %d for attempt %d\n", holder,
              request_attempt[i]);
       assert(S3_Fence || request_attempt[i] > transitions);
       holder = NOBODY; transitions = request_attempt[i];
#ifndef WAIT_FROM_VERDICT
       waited[0] = 0; waited[1] = 0;
#endif
       lease_changes() }
  :: atomic { request[i] == make ->
       printf("API server: the Lease is made anew for attempt %d\n", request_attempt[i]);
       there = true; transitions = request_attempt[i];
#ifdef MADE_AS_THE_FIRST
       granted = NOBODY;
#else
       granted = UNKNOWN;
#endif
#ifndef WAIT_FROM_BEFORE
       waited[0] = 0; waited[1] = 0;
#endif
       lease_changes() }
  :: atomic { request[i] == grant ->
       printf("API server: the Lease is granted to pod %d (the last one was %d)\n",
              request_attempt[i], granted);
       assert(S3_Fence || granted == UNKNOWN || request_attempt[i] > granted);
#ifdef ONE_STEP
       transitions = request_attempt[i];
#endif
       assert(S3_Fence || request_attempt[i] == transitions);
       holder = request_attempt[i]; granted = request_attempt[i];
       lease_changes() }
  :: atomic { request[i] != none ->
       printf("operator %d: its %e is lost\n", i, request[i]);
       request[i] = none; request_attempt[i] = 0 }
  :: atomic { waited[i] > 0 || request[i] != none ->
       printf("operator %d: crashes and starts anew, or takes the shard over\n", i);
       waited[i] = 0; request[i] = none; request_attempt[i] = 0 }
  od
}

proctype agent(byte a) {
end:
  do
  :: atomic { pod[a] == unbound ->
       printf("kubelet: pod %d is bound and its agent starts\n", a);
       pod[a] = bound }
  /* The first renewal is what the child waits for; a view that names the pod is not enough. */
  :: atomic { (pod[a] == bound || child[a]) && !over[a] && !renewing[a] && holder == a ->
       printf("agent %d: sends a renewal, and it is applied\n", a);
       renewing[a] = true; renewal_age[a] = 0;
       lease_changes() }
  :: atomic { renewing[a] ->
       printf("agent %d: renewal acknowledged, sent %d ago; the child runs\n", a, renewal_age[a]);
       really[a] = renewal_age[a];
#ifdef AGE_FROM_ANSWER
       age[a] = 0;
#else
       age[a] = renewal_age[a];
#endif
       child[a] = true; renewing[a] = false; renewal_age[a] = 0 }
  :: atomic { renewing[a] ->
       printf("agent %d: the answer to its renewal is lost\n", a);
       renewing[a] = false; renewal_age[a] = 0 }
#ifdef START_BY_SIGHT
  :: atomic { pod[a] == bound && !over[a] && !child[a] && granted == a ->
       printf("agent %d: has seen its name in the Lease some time; the child runs\n", a);
       child[a] = true; age[a] = 0; really[a] = 0 }
#endif
  /* Refused: it is no longer the holder. Or past its deadline, or the child has ended. */
  :: atomic { child[a] && !renewing[a] && holder != a ->
       printf("agent %d: is refused, and kills its child\n", a);
       stop_child(a) }
  :: atomic { child[a] && age[a] >= FENCE ->
       printf("agent %d: fences itself\n", a);
       stop_child(a) }
  :: atomic { child[a] ->
       printf("agent %d: its child has ended\n", a);
       stop_child(a) }
  :: atomic { pod[a] == bound && over[a] ->
       printf("kubelet: pod %d has ended\n", a);
       pod[a] = ended }
  /* Somebody deletes the object by force, or with its node; the process runs on. */
  :: atomic { pod[a] == bound && (child[a] || renewing[a]) ->
       printf("API server: pod %d is gone, its child is not\n", a);
       pod[a] = absent }
  :: atomic { pod[a] == absent && renewing[a] && !child[a] ->
       stop_child(a) }
  od
}

#define older(counter, by, limit) counter = (counter + by < limit -> counter + by : limit)

/* An agent that gets to run kills its child in time. */
inline agent_time(a) {
  if
  :: renewing[a] -> older(renewal_age[a], SLOW, KILL)
  :: else
  fi;
  if
  :: renewal_age[a] >= FENCE -> renewing[a] = false; renewal_age[a] = 0 /* too late to count */
  :: else
  fi;
  if
  :: child[a] ->
     older(age[a], SLOW, KILL); older(really[a], SLOW, KILL);
     if
#ifdef FROZEN
     :: false
#else
     :: age[a] >= KILL -> stop_child(a)
#endif
     :: else
     fi
  :: else
  fi
}

proctype clocks() {
end:
  do
  :: d_step { true ->
       agent_time(1); agent_time(2); agent_time(3);
       older(waited[0], FAST, LEASE); older(waited[1], FAST, LEASE);
       printf("-- tick: ages %d %d %d, waited %d %d\n", age[1], age[2], age[3], waited[0],
              waited[1]) }
  :: d_step { child[1] || child[2] || child[3] ->
       assert(S14_SelfFence || (really[1] < KILL && really[2] < KILL && really[3] < KILL));
       assert(S15_Exclusion || child[1] + child[2] + child[3] <= 1) }
  od
}

init {
  atomic {
    run operator(0); run operator(1); run agent(1); run agent(2); run agent(3); run clocks();
    run somebody()
  }
}
