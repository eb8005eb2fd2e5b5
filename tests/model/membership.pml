/* Members and shards: who may act on the jobs of one shard, and until when.

   Each life is one start of the operator's process, with a member Lease of its own (names get a
   random suffix at every start) and its own steady clock. One shard Lease names its holder; shards
   meet in nothing but their members' Leases, so one stands for all.

   Time goes by in ticks. In each one every live clock moves by SLOW or FAST, whichever it likes;
   FAST/SLOW is exactly lease/renew deadline, the premise of S15. Between two ticks anything may
   happen or not, so a replica that is paused is one that takes no step while ticks go by. Clocks
   stop counting at their limit and there are no counters, so runs of any length are covered.

   Faults, without limit: crash, restart, pause; a request lost; an answer lost after its request
   was applied; a request that arrives long after its sender gave it up or died; watches that are
   late by any time; stops; deletion of stale member Leases by the others.

   Left out because it could only be kinder:
   - A write from an old view of the shard Lease, or one that the Lease changed under, is refused by
     its resourceVersion. So views are not kept, and such requests vanish where they would be
     refused. (The mutant NO_COMPARE lets them through.)
   - A renewal reaches the API server at once or never: later, the others would wait longer.

   -DPREMISE_FALSE lets a replica pause between the check and the send.
   -DBOUND checks L3: when at some moment one replica is left and faults stop, and it does within a
   tick what it can do, the shard is its own within a lease duration and a tick of its own clock.
   The other macros in capitals, but for the numbers, are mutants. */

#ifndef DEADLINE
#define DEADLINE 4 /* renew deadline: 10 s */
#endif
#ifndef LEASE
#define LEASE 6 /* lease duration: 15 s */
#endif
#ifndef SLOW
#define SLOW 2
#endif
#ifndef FAST
#define FAST 3
#endif
#define LIVES 2
#define NOBODY 3

/* Always false. A failed assertion is printed with its text, and so tells the rule's name. */
bool S7_Precondition, S14_SelfFence, S15_Exclusion, L3_TakeOver;

mtype = {idle, take, taken, release, released}; /* what is under way: asked for, or done */
mtype = {absent, there, gone};                  /* a member Lease */

/* What stands in the API server. */
mtype lease[LIVES] = absent;
byte holder = NOBODY;

/* Each life, and what it knows. */
bool started[LIVES], up[LIVES];
byte age[LIVES] = DEADLINE;     /* own clock since its last acknowledged renewal was SENT */
byte really[LIVES] = DEADLINE;  /* ghost: the same, kept by the model and not by the replica */
bool renewing[LIVES];           /* a renewal was applied, its answer is on its way */
byte renewal_age[LIVES];        /* own clock since that renewal was sent */
bool owns[LIVES];
mtype request[LIVES] = idle;    /* its write on the shard Lease */
bool checked[LIVES];            /* only with PREMISE_FALSE: checked, and not yet sent */
typedef Others {
  byte silent[LIVES];           /* own clock since the other's Lease was SEEN to change */
  bool changed[LIVES]           /* it has changed, and the watch has not shown that yet */
};
Others seen[LIVES];
byte collect[LIVES] = NOBODY;   /* its DELETE of this one's stale member Lease is under way ... */
bool collect_old[LIVES];        /* ... and that Lease has changed since */

/* Requests whose sender gave them up or died may still arrive. */
mtype late[LIVES] = idle;       /* idle, take or release */
bool leaving[LIVES];            /* DELETE of its own member Lease, by a stopped replica */
#ifdef BOUND
bool calm;                      /* no more faults */
byte since;                     /* the survivor's clock since then */
#define CALM calm
#define FAULTS !calm &&
#else
#define CALM false
#define FAULTS
#endif
#ifdef OLD_VERDICT
bool judged[LIVES];             /* the holder of then is dead */
#endif
#ifdef NO_COMPARE
bool old[LIVES];                /* the shard Lease has changed since the version in its request */
#endif

#ifdef NO_SELF_FENCE
#define valid(i) (lease[i] != absent)
#else
#define valid(i) (age[i] < DEADLINE)
#endif
#define may_act(i) (up[i] && owns[i] && valid(i))
#define nobody_else(i) ((i == 0 || !may_act(0)) && (i == 1 || !may_act(1)))

/* The member Lease is gone, or was not seen to change for its duration, and a live read says the
   same. */
#ifdef WAIT_FOR_GONE
#define dead(i, h) (lease[h] == gone)
#elif defined(NO_LIVE_READ)
#define dead(i, h) (lease[h] == gone || seen[i].silent[h] >= LEASE)
#else
#define dead(i, h) (lease[h] == gone || (seen[i].silent[h] >= LEASE && !seen[i].changed[h]))
#endif

inline shard_changes(new_holder) {
  d_step {
    holder = new_holder;
    k = 0;
    do
    :: k < LIVES ->
#ifdef NO_COMPARE
       old[k] = true;
#else
       if
       :: request[k] == take || request[k] == release -> request[k] = idle
       :: else
       fi;
       late[k] = idle;
#endif
       k++
    :: else -> break
    od;
    k = 0
  }
}

inline member_changes(m) {
  d_step {
    lease[m] = there;
    k = 0;
    do
    :: k < LIVES ->
       if
       :: up[k] && k != m ->
          seen[k].changed[m] = true;
#ifndef NO_LIVE_READ
          seen[k].silent[m] = 0 /* counts from 0 once it is seen; until then nothing asks */
#endif
       :: else
       fi;
       collect_old[k] = (collect[k] == m || collect_old[k]);
       k++
    :: else -> break
    od;
    k = 0
  }
}

/* The sender no longer waits for its write. */
inline abandon(i) {
  if
  :: (request[i] == take || request[i] == release) && late[i] == idle -> late[i] = request[i]
  :: true /* lost; or it was applied and only its answer is lost */
  fi;
  request[i] = idle
}

/* Past the deadline: everything that was owned is forgotten, and so is what was asked for. The
   answer to a request of before gives no ownership after. */
inline forget(i) {
  owns[i] = false;
#ifdef OLD_VERDICT
  judged[i] = false;
#endif
#ifndef BELIEVE_OLD_ANSWER
  if
  :: request[i] != idle -> abandon(i)
  :: else
  fi
#endif
}

/* The process is no more. Its memory is put to one value, so that equal states are equal. */
inline end_life(i) {
  if
  :: request[i] != idle -> abandon(i)
  :: else
  fi;
  d_step {
    up[i] = false; owns[i] = false; checked[i] = false; renewing[i] = false; renewal_age[i] = 0;
    age[i] = DEADLINE; really[i] = DEADLINE; collect[i] = NOBODY; collect_old[i] = false;
#ifdef OLD_VERDICT
    judged[i] = false;
#endif
    k = 0;
    do
    :: k < LIVES -> seen[i].silent[k] = 0; seen[i].changed[k] = false; k++
    :: else -> break
    od;
    k = 0
  }
}

inline ask(i, what) {
  request[i] = what;
#ifdef NO_COMPARE
  old[i] = false;
#endif
}

proctype replica(byte i) {
  byte k;
end:
  do
  /* Membership. A renewal carries the UID, so it does not bring a deleted Lease back. */
  :: atomic { up[i] && !renewing[i] && lease[i] != gone && !(CALM && age[i] == 0) ->
       printf("replica %d: sends a renewal, and it is applied\n", i);
       member_changes(i); renewing[i] = true }
  :: atomic { up[i] && !renewing[i] && lease[i] == gone ->
       printf("replica %d: finds its member Lease gone, and ends\n", i);
       end_life(i) }
  :: atomic { renewing[i] ->
       printf("replica %d: renewal acknowledged, sent %d ago (the last one %d ago)\n", i,
              renewal_age[i], age[i]);
#ifndef KEEP_PAST_DEADLINE
       if
       :: age[i] >= DEADLINE -> forget(i)
       :: else
       fi;
#endif
       really[i] = renewal_age[i];
#ifdef AGE_FROM_ANSWER
       age[i] = 0;
#else
       age[i] = renewal_age[i];
#endif
       renewing[i] = false; renewal_age[i] = 0 }
  :: atomic { FAULTS renewing[i] ->
       printf("replica %d: the answer to its renewal is lost\n", i);
       renewing[i] = false; renewal_age[i] = 0 }
  /* The timer. Before it fires, the answer to the next renewal does the same. */
#ifndef KEEP_PAST_DEADLINE
  :: atomic { up[i] && age[i] >= DEADLINE && (owns[i] || request[i] != idle) ->
       printf("replica %d: past its renew deadline, forgets all\n", i);
       forget(i) }
#endif
  :: atomic { up[i] && seen[i].changed[0] -> seen[i].silent[0] = 0; seen[i].changed[0] = false }
  :: atomic { up[i] && seen[i].changed[1] -> seen[i].silent[1] = 0; seen[i].changed[1] = false }

  /* Shards. The plan is left open: any member may want the shard, any holder may give it up. A
     member that forgot takes even its own shard by a write, or gives it up by one: it has stepped
     aside. */
  :: atomic { up[i] && valid(i) && !owns[i] && request[i] == idle &&
              (holder == NOBODY || holder == i || dead(i, holder)) ->
       printf("replica %d: asks for the shard (held by %d)\n", i, holder);
       ask(i, take) }
#ifdef OLD_VERDICT
  :: atomic { up[i] && valid(i) && !owns[i] && request[i] == idle && !judged[i] &&
              holder != NOBODY && holder != i && dead(i, holder) ->
       printf("replica %d: finds the holder %d dead\n", i, holder);
       judged[i] = true }
  :: atomic { up[i] && valid(i) && !owns[i] && request[i] == idle && judged[i] ->
       printf("replica %d: asks for the shard as it stands now (held by %d)\n", i, holder);
       judged[i] = false; ask(i, take) }
#endif
  :: atomic { FAULTS up[i] && (owns[i] || valid(i)) && request[i] == idle && holder == i &&
              !checked[i] ->
       printf("replica %d: has drained the shard, gives it up\n", i);
#ifndef RELEASE_BEFORE_DRAIN
       owns[i] = false;
#endif
       ask(i, release) }
  :: atomic { request[i] == take || request[i] == release ->
       printf("API server: %d's %e is applied\n", i, request[i]);
#ifdef NO_COMPARE
       assert(S7_Precondition || !old[i]);
#endif
       if
       :: request[i] == take -> request[i] = taken; shard_changes(i)
       :: else -> request[i] = released; shard_changes(NOBODY)
       fi;
#ifndef RELEASE_BEFORE_DRAIN
       if
       :: request[i] == released -> request[i] = idle /* it waits for no answer */
       :: else
       fi
#endif
     }
  :: atomic { up[i] && request[i] == taken ->
       printf("replica %d: the shard is its own, by acknowledged write\n", i);
       owns[i] = valid(i); request[i] = idle }
#ifdef RELEASE_BEFORE_DRAIN
  :: atomic { up[i] && request[i] == released -> owns[i] = false; request[i] = idle }
#endif
#ifdef OWN_WITHOUT_SWAP
  :: atomic { up[i] && !owns[i] && holder == i && valid(i) && request[i] == idle ->
       printf("replica %d: finds its name on the shard Lease\n", i);
       owns[i] = true }
#endif
  :: atomic { FAULTS request[i] != idle ->
       printf("replica %d: no answer about its %e\n", i, request[i]);
       abandon(i) }
  :: atomic { FAULTS late[i] != idle ->
       printf("API server: an old %e of %d arrives\n", late[i], i);
       if
       :: late[i] == take -> late[i] = idle; shard_changes(i)
       :: else -> late[i] = idle; shard_changes(NOBODY)
       fi }

  /* A stale member Lease that no shard names is deleted, with the version that was seen. */
#ifndef NO_COLLECTION
#define may_collect(i, m) \
  (up[i] && valid(i) && collect[i] == NOBODY && i != m && lease[m] == there && holder != m && \
   dead(i, m))
  :: atomic { FAULTS may_collect(i, 0) -> collect[i] = 0 }
  :: atomic { FAULTS may_collect(i, 1) -> collect[i] = 1 }
  :: atomic { collect[i] != NOBODY ->
#ifndef DELETE_WITHOUT_VERSION
       if
       :: collect_old[i] -> printf("API server: %d's deletion is refused\n", i)
       :: else ->
#endif
          printf("API server: the member Lease of %d is deleted\n", collect[i]);
          lease[collect[i]] = gone
#ifndef DELETE_WITHOUT_VERSION
       fi
#endif
       ; collect[i] = NOBODY; collect_old[i] = false }
#endif

  /* What it is all for. Sending is checked at the last moment; nobody else may be about to. */
#ifdef PREMISE_FALSE
  :: atomic { may_act(i) && !checked[i] ->
       printf("replica %d: has checked that it may act\n", i);
       checked[i] = true }
  :: atomic { up[i] && checked[i] ->
       printf("replica %d: acts, at age %d\n", i, age[i]);
       assert(S15_Exclusion || nobody_else(i));
       checked[i] = false }
#else
  :: d_step { may_act(i) ->
       printf("replica %d: acts, at age %d\n", i, really[i]);
       assert(S14_SelfFence || really[i] < DEADLINE);
       assert(S15_Exclusion || nobody_else(i)) }
#endif

  /* The ends of a life, and the next one. */
  :: atomic { FAULTS up[i] -> printf("replica %d: crashes\n", i); end_life(i) }
  :: atomic { FAULTS up[i] && valid(i) && !leaving[i] && !checked[i] ->
       printf("replica %d: stops; its workers have stopped\n", i);
#ifndef DELETE_BEFORE_STOP
       end_life(i);
#endif
       leaving[i] = true }
  :: atomic { leaving[i] ->
       printf("API server: the member Lease of %d is deleted by itself\n", i);
       lease[i] = gone; leaving[i] = false }
  :: atomic { FAULTS !started[i] ->
       printf("replica %d: starts\n", i);
       started[i] = true; up[i] = true
#ifdef TRUST_FIRST_SIGHT
       ; seen[i].silent[1 - i] = LEASE
#endif
     }
  od
}

#define older(counter, limit) \
  counter = (counter + rate < limit -> counter + rate : limit)

inline silence_grows(i, j) {
  if
#ifdef NO_LIVE_READ
  :: lease[j] == there -> older(seen[i].silent[j], LEASE)
#endif
  :: lease[j] == there && !seen[i].changed[j] -> older(seen[i].silent[j], LEASE)
  :: else
  fi
}

inline time_passes(i) {
  if
  :: up[i] ->
#ifdef CONSTANT
     rate = (i == 1 -> FAST : SLOW);
#else
     if
     :: rate = SLOW
     :: rate = FAST
     fi;
#endif
     d_step {
       older(age[i], DEADLINE); older(really[i], DEADLINE);
       if
       :: renewing[i] -> older(renewal_age[i], DEADLINE)
       :: else
       fi;
       if
       :: renewal_age[i] >= DEADLINE -> renewing[i] = false; renewal_age[i] = 0 /* worthless */
       :: else
       fi;
       if
       :: i != 0 -> silence_grows(i, 0)
       :: else
       fi;
       if
       :: i != 1 -> silence_grows(i, 1)
       :: else
       fi;
       rate = 0
     }
  :: else
  fi
}

#ifdef BOUND
#define busy(i) (up[i] && (renewing[i] || age[i] > 0 || request[i] != idle || \
                           seen[i].changed[0] || seen[i].changed[1] || leaving[1 - i] || \
                           (!owns[i] && (holder == NOBODY || holder == i || dead(i, holder)))))
#define quiet (!busy(0) && !busy(1))
#endif

proctype clocks() {
  byte rate;
end:
  do
#ifdef BOUND
  :: atomic { !calm && ((up[0] && !up[1] && lease[0] != gone) ||
                        (up[1] && !up[0] && lease[1] != gone)) ->
       printf("faults stop\n");
       calm = true }
  :: atomic { (!calm || (quiet && !owns[0] && !owns[1])) && (up[0] || up[1]) ->
       if
       :: calm -> since = since + (up[0] -> SLOW : FAST)
       :: else
       fi;
       assert(L3_TakeOver || since <= LEASE + FAST);
#else
  :: atomic { (up[0] || up[1]) ->
#endif
       time_passes(0);
       time_passes(1);
       printf("-- tick: ages %d %d\n", age[0], age[1]) }
  od
}

init {
  atomic {
    run replica(0); run replica(1); run clocks();
  }
}
