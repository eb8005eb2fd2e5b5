/* The end of a stage, and what comes after it: the next stage, or the end of the job. What is asked:
   it never comes beside a pod of the stage that runs and was not given up, and no pod of the stage
   appears later.

   The stage makes up to two attempts. Each is recorded before its pod is asked for. It ends by itself,
   as Hung or because somebody asked for it, and then its pod has to be stopped; or it ends as Lost,
   and its pod is given up. By a cancel, a deadline or an attempt's end the end of the stage is
   recorded, at any moment. No attempt starts from then on. The stage is over once, as the operator
   knows it,
   - no request for a pod can be applied any more. A pod that may have come so is looked for, live;
   - no pod runs. One that was asked to stop is given up if it overstays. One that a policy protects is
     given up too. But a request to delete a pod that fails is sent again.

   The operator may crash at any time. The next process has the status and a new list of the pods.
   After that its cache lags, as that of the process before. It does not know what the other one has
   sent: only that no pod's UID is on record for an attempt.

   Time is in two places. A request for a pod may be applied until its limit is over (`left`), and then
   never; each process waits for as long or longer. A pod overstays only after it was asked to stop,
   and no live node lets it. All other windows may end at any moment.

   Left out: a second request for a pod while the first may still be applied; late writes of the
   status and two processes that act at once (see job.pml and stages.pml). A deletion arrives at once.
   A late one could only be kinder, because it names its pod's UID.

   -DREST checks L2: see the end. The other macros in capitals are mutants. */

#define ATTEMPTS 2

/* Always false. A failed assertion is printed with its text, and so tells the rule's name. */
bool S6_Beside;

mtype = {Active, Stopping, Over};  /* the stage. Over: the next one begins, or the job is terminal */
mtype = {none, open, over, lost};  /* an attempt */
/* A pod. stopping: it was asked to. stuck: it was, and has overstayed. gone: it has existed. */
mtype = {absent, runs, stopping, stuck, ended, gone};
mtype = {well, failed, refused};   /* the last request to delete a pod */

/* What stands in the API server. */
mtype phase = Active;
byte attempt;
mtype how[ATTEMPTS + 1] = none;
bool uid[ATTEMPTS + 1];            /* the UID of its pod is on record */
mtype pod[ATTEMPTS + 1] = absent;

/* Requests for pods: one is on its way; one may be. */
bool post[ATTEMPTS + 1], left[ATTEMPTS + 1];

/* What the operator's process knows of each attempt. */
mtype cache[ATTEMPTS + 1] = absent;
bool mine[ATTEMPTS + 1];           /* it has recorded the attempt */
bool asked[ATTEMPTS + 1];          /* it has sent a request, and has not seen the pod since */
bool known;                        /* the UID of the open attempt's pod: by an answer or the cache */
bool comes_no_more[ATTEMPTS + 1];  /* by a live read after the limit */
mtype deletion[ATTEMPTS + 1] = well;

/* Ghosts. */
bool protected[ATTEMPTS + 1];      /* a policy has refused its deletion */
bool calm;                         /* only with REST: no more faults */

#define is_open (phase == Active && how[attempt] == open)
#define lives(state) (state == runs || state == stopping || state == stuck)
#define is_there(a) (lives(cache[a]) || cache[a] == ended)

/* A pod may still come that the cache does not show. */
#ifdef FORGET_CREATION
#define by_us(a) false
#else
#define by_us(a) asked[a]
#endif
#ifdef NEW_PROCESS_FORGETS
#define by_another(a) false
#else
#define by_another(a) (how[a] != none && !mine[a] && !uid[a])
#endif
#define unseen(a) (!is_there(a) && !comes_no_more[a] && (by_us(a) || by_another(a)))
#ifdef NO_LOOK
#define may_come(a) (unseen(a) && left[a])
#else
#define may_come(a) unseen(a)
#endif

/* A pod runs, and is waited for. */
#ifdef FAILURE_IS_REFUSAL
#define given_up(a) (cache[a] == stuck || cache[a] == runs && deletion[a] != well)
#else
#define given_up(a) (cache[a] == stuck || cache[a] == runs && deletion[a] == refused)
#endif
#ifdef LAST_ATTEMPT_ONLY
#define awaited(a) (a == attempt && lives(cache[a]) && how[a] != lost && !given_up(a))
#else
#define awaited(a) (lives(cache[a]) && how[a] != lost && !given_up(a))
#endif

#define beside(a) (lives(pod[a]) && pod[a] != stuck && how[a] != lost && !protected[a])

#ifdef NEVER_TRIES_AGAIN
#define tries(a) (deletion[a] == well)
#else
#define tries(a) (deletion[a] != refused || !calm)
#endif

inline end_attempt(outcome) {
  how[attempt] = outcome; uid[attempt] = known; known = false;
  printf("operator: attempt %d ends: %e\n", attempt, outcome)
}

inline forget(a) {
  cache[a] = pod[a]; mine[a] = false; asked[a] = false; comes_no_more[a] = false; deletion[a] = well
}

/* What the operator does about the pod of an attempt that is over. */
inline tidy(a) {
  if
  :: cache[a] == runs && pod[a] == runs && how[a] != open && tries(a) ->
     if
     :: pod[a] = stopping; deletion[a] = well
     :: !calm -> deletion[a] = failed
     :: deletion[a] = refused; protected[a] = true
     fi;
     printf("API server: DELETE of pod %d: %e\n", a, deletion[a])
  :: phase == Stopping && unseen(a) && !left[a] ->
     cache[a] = pod[a]; comes_no_more[a] = !is_there(a);
     printf("operator: reads pod %d live: %e\n", a, pod[a])
  fi
}

proctype operator() {
end:
  do
  :: atomic { phase == Active && how[attempt] != open && attempt < ATTEMPTS ->
       attempt++; how[attempt] = open; mine[attempt] = true;
       printf("operator: attempt %d is on record\n", attempt) }
  :: atomic { is_open && mine[attempt] && !asked[attempt] && !known ->
       asked[attempt] = true; post[attempt] = true; left[attempt] = true;
       printf("operator: asks for pod %d\n", attempt) }
  :: atomic { is_open ->
       if
       :: end_attempt(over)
       :: end_attempt(lost)
       fi }
  :: atomic { phase == Active && attempt > 0 ->
       if
       :: is_open -> end_attempt(over); printf("user: cancels, or the time is over\n")
       :: else
       fi;
       phase = Stopping; printf("operator: the stage's end is on record\n") }
  :: atomic { tidy(1) }
  :: atomic { tidy(2) }
  :: d_step { phase == Stopping && !may_come(1) && !may_come(2) && !awaited(1) && !awaited(2) ->
       phase = Over; printf("operator: the stage is over\n");
       assert(S6_Beside || !beside(1) && !beside(2));
       known = false; forget(1); forget(2) }
  :: d_step { !calm && phase != Over ->
       printf("operator: crashes, and is replaced\n");
       known = false; forget(1); forget(2) }
#ifdef REST
  :: atomic { !calm -> calm = true }
#endif
  od
}

/* A pod, the requests for it, and the watch. */
proctype world(byte a) {
end:
  do
  :: atomic { post[a] ->
       post[a] = false; pod[a] = runs; printf("API server: POST of pod %d is applied\n", a);
       assert(S6_Beside || phase != Over);
       if
       :: asked[a] -> known = known || how[a] == open
       :: printf("network: the answer is lost\n")
       fi }
  :: atomic { post[a] && asked[a] && !calm ->
       post[a] = false; asked[a] = false; printf("API server: POST of pod %d is refused\n", a) }
  :: atomic { left[a] ->
       post[a] = false; left[a] = false; printf("network: nothing is left for pod %d\n", a) }
  /* When calm, only a pod that was asked to stop ends: others may run for ever. */
  :: atomic { lives(pod[a]) && phase != Over && !(calm && pod[a] == runs) ->
       pod[a] = ended; protected[a] = false; printf("kubelet: pod %d has ended\n", a) }
  :: atomic { pod[a] == stopping && phase != Over ->
       pod[a] = stuck; printf("kubelet: pod %d overstays\n", a) }
  :: atomic { pod[a] == ended && how[a] != open && phase != Over ->
       pod[a] = gone; printf("API server: pod %d is gone\n", a) }
  :: d_step { cache[a] != pod[a] && phase != Over ->
       cache[a] = pod[a]; asked[a] = asked[a] && !is_there(a);
       known = known || is_there(a) && how[a] == open;
       deletion[a] = (cache[a] == runs -> deletion[a] : well);
       printf("API server: shows pod %d: %e\n", a, pod[a]) }
  od
}

#ifdef REST
/* Once faults stop every stage ends. No fairness is needed: a run without faults has no cycle. */
ltl L2_Ends { [] (calm -> <> (phase == Over)) }
#endif

init { atomic { run operator(); run world(1); run world(2) } }
