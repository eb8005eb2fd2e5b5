/* One job: attempts, the pods' names, the outcome and the budgets, with no assumption about time.

   Two replicas act on the job at once and whenever they like, as if no lock were there: what holds
   here needs neither Leases nor clocks. Each write may be paused for ever between its check and its
   arrival, so a replica that wakes up (or a dead one's request) writes what was decided long ago.

   Windows are left out: whatever a window's end allows may happen at any moment. So every verdict
   may be premature, and an attempt that is called lost is often a zombie: its pod runs on and
   reports success later.

   Faults: crash and restart (memory is gone), a request lost, late, or delivered twice, an answer
   lost after its request was applied, node loss, deletion of pods by others, refused creation,
   another owner's pod of the same name, cancel, suspend and resume.

   Left out because it could only be kinder: a status write from an old view, or one that the job
   changed under, is refused by its resourceVersion; such requests vanish where they would be
   refused. A view is old means here: decided when it was new, and arriving later. The API server's
   own rules (transition table, counters that never fall) are not modelled: the replicas must keep
   them by themselves, and the assertions are what the API server would say.

   -DREST checks L2: see the end. The other macros in capitals, but for the bounds, are mutants. */

#ifndef BACKOFF_LIMIT
#define BACKOFF_LIMIT 1
#endif
#ifndef DISRUPTION_LIMIT
#define DISRUPTION_LIMIT 1
#endif
/* Each attempt but the last spends a budget, or ends in the one suspension. */
#ifdef REQUESTS
#define ATTEMPTS (BACKOFF_LIMIT + DISRUPTION_LIMIT + 2)
#else
#define ATTEMPTS (BACKOFF_LIMIT + DISRUPTION_LIMIT + 1)
#endif
#define NOBODY 2
#define LATE 2 /* the place of a request whose sender gave it up or died */

/* Always false. A failed assertion is printed with its text, and so tells the rule's name. */
bool S1_OneOutcome, S2_FencedOutcome, S3_Fence, S4_LegalEdges, S6_OnePod,
    S8_Budget, S12_CancelSticks, OutcomeUnseen;

mtype = {None, Pending, Running, Backoff, Suspended, Cancelling, Succeeded, Failed, Cancelled};
/* A pod object: `hit` is one that ended because it was deleted, evicted or preempted. A pod whose
   node is lost just stays `runs`, and may tell of its success at any later time. */
mtype = {absent, runs, succeeded, failed, hit, alien};
/* Status writes. lost_now raises the attempt in the same write, lost_wait goes to Backoff. */
mtype = {none, start, succeed, fail, lost_now, lost_wait, cancel, cancel_done, suspend, resume,
         tell};
/* What a replica remembers of the current attempt. */
mtype = {foreign, mine, tried, existed};

/* What stands in the API server. */
mtype phase = None;
byte attempt, failures, disruptions;
byte writer = NOBODY;           /* whose mark the intent carries */
bool told;                      /* `waiting` says that the creation was refused */
bool spec_cancel, spec_suspend, was_suspended;
mtype pod[ATTEMPTS + 1] = absent;

/* Requests on their way: one status write for each replica and a late one, and for each attempt
   whether a POST of its pod is somewhere. */
mtype status_write[3] = none;
bool creates[ATTEMPTS + 1];

byte late_sender = NOBODY;

mtype knows[2] = foreign;

/* Ghosts. */
bool counted;                   /* a budget was spent for the current attempt */
bool pod_was;                   /* the current attempt's pod exists or has existed */
bool alien_was;                 /* only with ALIENS */
bool calm;                      /* only with REST: no more faults */

/* Scratch, back to this after every step. */
byte before;
mtype what = none, next = None;

#define terminal (phase == Succeeded || phase == Failed || phase == Cancelled)
#define idle (phase == None || phase == Pending || phase == Backoff)
/* The end of attempt a is on record; once true it stays so. */
#define ended(a) (a < attempt || phase != Running)
#define lives(a) (pod[a] == runs)
#define budget_left (failures <= BACKOFF_LIMIT && disruptions <= DISRUPTION_LIMIT)

#define edge(a, b) ( \
  (a == None && (b == Running || b == Suspended || b == Failed || b == Cancelled)) || \
  (a == Pending && (b == Running || b == Suspended || b == Cancelling || b == Cancelled || \
                    b == Failed)) || \
  (a == Running && (b == Running || b == Backoff || b == Suspended || b == Cancelling || \
                    b == Succeeded || b == Failed)) || \
  (a == Backoff && (b == Running || b == Suspended || b == Cancelling || b == Cancelled || \
                    b == Failed)) || \
  (a == Suspended && (b == Pending || b == Cancelling || b == Cancelled || b == Failed)) || \
  (a == Cancelling && b == Cancelled))

/* Any change of the job gives it a new resourceVersion: status writes on their way are refused. */
inline job_changes() {
#ifdef NO_COMPARE
  skip
#else
  status_write[0] = none; status_write[1] = none; status_write[LATE] = none;
  late_sender = NOBODY
#endif
}

inline next_attempt() {
#ifdef REUSE_NUMBER
  attempt = (attempt == 0 -> 1 : attempt);
#else
  attempt++;
#endif
  writer = NOBODY; told = false; counted = false; pod_was = false;
  knows[0] = foreign; knows[1] = foreign;
  next = Running
}

/* Where an attempt's end leads when it was no success. */
inline after_end(at_once) {
  if
  :: !budget_left -> next = Failed
  :: budget_left && spec_cancel -> next = Cancelling
  :: budget_left && !spec_cancel && spec_suspend -> next = Suspended
  :: budget_left && !spec_cancel && !spec_suspend && !at_once -> next = Backoff
  :: budget_left && !spec_cancel && !spec_suspend && at_once -> next_attempt()
  fi
}

inline spend(counter) {
  assert(S8_Budget || !counted);
  counted = true;
  counter++
}

/* The status write in `slot` is applied. */
inline apply_status(slot, sender) {
  d_step {
    what = status_write[slot];
    before = attempt;
    status_write[slot] = none;
    printf("API server: %e of replica %d is applied to %e, attempt %d\n", what, sender, phase,
           attempt);
    assert(S1_OneOutcome || !terminal);
    next = phase;
    if
    :: what == start -> next_attempt(); writer = sender
    :: what == succeed ->
       assert(S2_FencedOutcome || (phase == Running && pod[attempt] == succeeded));
       next = Succeeded
    :: what == fail -> spend(failures); after_end(false)
    :: what == lost_wait -> spend(disruptions); after_end(false)
    :: what == lost_now ->
       spend(disruptions); after_end(true);
       if
       :: next == Running -> writer = sender
       :: else
       fi
    :: what == cancel -> next = Cancelling
    :: what == cancel_done -> next = Cancelled
    :: what == suspend -> next = Suspended
    :: what == resume -> next = Pending
    :: what == tell -> told = true
    fi;
    assert(S3_Fence || attempt >= before);
    assert(S3_Fence || !(next == Running && what != tell) || attempt == before + 1);
    assert(S12_CancelSticks || phase != Cancelling || next == Cancelled);
    assert(S4_LegalEdges || what == tell || edge(phase, next));
    assert(S8_Budget || failures <= BACKOFF_LIMIT + 1 && disruptions <= DISRUPTION_LIMIT + 1);
    phase = next;
    job_changes();
    what = none; before = 0; next = None
  }
}

inline apply_create(a) {
  d_step {
    printf("API server: POST of pod %d arrives (attempt %d, pod %e)\n", a, attempt, pod[a]);
    assert(S8_Budget || a <= attempt);
    if
    :: pod[a] == absent ->
       /* Its number must not be given out twice while it counts. */
       assert(S6_OnePod || ended(a) || !pod_was);
       pod[a] = runs; pod_was = (a == attempt || pod_was)
    :: else /* 409: nothing is created */
    fi
  }
}

#ifdef NO_LATE_WRITES
#define LATE_FREE false
#else
#define LATE_FREE (status_write[LATE] == none)
#endif
#define may_decide(i) (status_write[i] == none)
#define decide(i, what) status_write[i] = what; printf("replica %d: decides %e\n", i, what)

proctype replica(byte i) {
end:
  do
  /* An attempt has ended by itself: the cached pod is proof, because it can only have stayed so. */
  :: atomic { may_decide(i) && phase == Running && pod[attempt] == succeeded ->
       decide(i, succeed) }
#ifdef SUCCESS_OF_ANY
  :: atomic { may_decide(i) && phase == Running && attempt > 1 && pod[attempt - 1] == succeeded ->
       decide(i, succeed) }
#endif
#ifdef ADOPT_ALIEN
  :: atomic { may_decide(i) && phase == Running && pod[attempt] == alien -> decide(i, succeed) }
#endif
#ifdef COUNT_AGAIN
  :: atomic { may_decide(i) && phase == Backoff && pod[attempt] == failed -> decide(i, fail) }
#endif
  :: atomic { may_decide(i) && phase == Running && pod[attempt] == failed -> decide(i, fail) }
  :: atomic { may_decide(i) && phase == Running && pod[attempt] == hit ->
       if
       :: decide(i, lost_now)
       :: decide(i, lost_wait)
       fi }
  /* Any window ran out, and a live read still shows no end. */
  :: atomic { may_decide(i) && phase == Running && !spec_cancel && !spec_suspend &&
              (pod[attempt] == runs || (pod[attempt] == absent && knows[i] == foreign && !told)) &&
              !calm ->
       if
       :: decide(i, lost_now)
       :: decide(i, lost_wait)
       fi }
  /* Seen or created before, and gone by a live read. */
  :: atomic { may_decide(i) && phase == Running && pod[attempt] == absent &&
              (knows[i] == existed || (calm && knows[i] == foreign && !told)) ->
       decide(i, lost_now) }
  :: atomic { may_decide(i) && phase == Running && spec_cancel &&
              (pod[attempt] == runs || pod[attempt] == absent || pod[attempt] == alien) ->
       decide(i, cancel) }
  :: atomic { may_decide(i) && phase == Running && !spec_cancel && spec_suspend &&
              (pod[attempt] == runs || pod[attempt] == absent || pod[attempt] == alien) ->
       decide(i, suspend) }

  /* No attempt runs. */
  :: atomic { may_decide(i) && idle && !spec_cancel && !spec_suspend && budget_left ->
#ifdef POD_BEFORE_INTENT
       creates[attempt + 1] = true;
#endif
       decide(i, start) }
#ifdef START_SUSPENDED
  :: atomic { may_decide(i) && phase == Suspended && !spec_cancel -> decide(i, start) }
#endif
#ifdef FORGET_CANCEL
  :: atomic { may_decide(i) && phase == Cancelling -> decide(i, start) }
#endif
  :: atomic { may_decide(i) && idle && !spec_cancel && spec_suspend -> decide(i, suspend) }
  :: atomic { may_decide(i) && phase == Suspended && !spec_cancel && !spec_suspend ->
       decide(i, resume) }
  :: atomic { may_decide(i) && (idle || phase == Suspended) && spec_cancel ->
       if
       :: phase != None -> decide(i, cancel)
       :: decide(i, cancel_done)
       fi }
  :: atomic { may_decide(i) && phase == Cancelling -> decide(i, cancel_done) }

  /* The way of a status write. */
  :: atomic { status_write[i] != none ->
       apply_status(i, i);
       if
       :: phase == Running && writer == i -> knows[i] = mine
       :: phase == Running && writer == i && !calm -> skip /* the answer is lost */
       :: else
       fi }
  :: atomic { status_write[i] != none && !calm ->
       printf("replica %d: no answer to its %e\n", i, status_write[i]);
       if
       :: LATE_FREE -> status_write[LATE] = status_write[i]; late_sender = i
       :: true
       fi;
       status_write[i] = none }

  /* The pod of an intent. One that was written, with its answer lost, is known by its mark. */
  :: atomic { phase == Running && writer == i && knows[i] == foreign ->
       printf("replica %d: finds its own intent\n", i);
       knows[i] = mine }
  :: atomic { phase == Running && knows[i] == mine && !creates[attempt] ->
       printf("replica %d: asks for pod %d\n", i, attempt);
       creates[attempt] = true; knows[i] = tried }
  /* No answer, or a refusal: once more, after a live read of pod and job. */
#ifndef NEVER_ASKS_AGAIN
  :: atomic { phase == Running && (knows[i] == tried || (told && knows[i] == foreign)) &&
              pod[attempt] == absent && !creates[attempt] ->
       printf("replica %d: asks for pod %d again\n", i, attempt);
       creates[attempt] = true; knows[i] = tried }
#endif
  :: atomic { may_decide(i) && phase == Running && knows[i] == tried && !told &&
              (pod[attempt] == absent || pod[attempt] == alien) ->
       decide(i, tell) }
  /* The pods' watch, or the answer to the POST. */
  :: atomic { phase == Running && knows[i] != existed && pod_was &&
              pod[attempt] != absent && pod[attempt] != alien ->
       knows[i] = existed }

  /* Crash and restart: requests live on, memory does not. */
  :: atomic { !calm && (knows[i] != foreign || status_write[i] != none) ->
       printf("replica %d: crashes and starts anew\n", i);
       if
       :: status_write[i] != none && LATE_FREE ->
          status_write[LATE] = status_write[i]; late_sender = NOBODY
       :: true
       fi;
       if
       :: writer == i -> writer = NOBODY
       :: else
       fi;
       if
       :: late_sender == i -> late_sender = NOBODY
       :: else
       fi;
       status_write[i] = none; knows[i] = foreign }
  od
}

/* What the replicas do with pods that no attempt stands behind any more, as a view of any age shows
   it: that an end is on record stays true. The pod is deleted and its finalizer taken off. */
#ifdef RELEASE_BEFORE_RECORD
#define may_go(a) (ended(a) || pod[a] == succeeded)
#else
#define may_go(a) (ended(a) || pod[a] == alien)
#endif

inline pod_moves(a) {
  if
  /* A POST arrives; another copy of it may come later. */
  :: creates[a] -> apply_create(a); creates[a] = false
  :: creates[a] && !calm -> apply_create(a)
  :: creates[a] && !calm -> printf("network: POST of pod %d is lost\n", a); creates[a] = false
  /* The worker ends; when the attempt is long over, it is a zombie that does. */
  :: pod[a] == runs -> pod[a] = succeeded; printf("kubelet: pod %d succeeded\n", a)
  :: pod[a] == runs && !ended(a) -> pod[a] = failed; printf("kubelet: pod %d failed\n", a)
  :: pod[a] == runs && !ended(a) && !calm ->
     pod[a] = hit; printf("kubelet: pod %d was deleted or evicted, and ended\n", a)
  :: pod[a] != absent && may_go(a) ->
     printf("API server: pod %d (%e) is gone\n", a, pod[a]);
     assert(OutcomeUnseen || ended(a) || pod[a] == alien);
     pod[a] = absent
  fi
}

proctype world() {
end:
  do
  :: atomic { status_write[LATE] != none ->
       apply_status(LATE, late_sender) }
  :: atomic { pod_moves(1) }
  :: atomic { pod_moves(2) }
#if ATTEMPTS > 2
  :: atomic { pod_moves(3) }
#endif
#if ATTEMPTS > 3
  :: atomic { pod_moves(4) }
#endif
#ifdef ALIENS
  :: atomic { !calm && !alien_was && pod[1] == absent ->
       printf("somebody makes a pod of the name of pod 1\n");
       pod[1] = alien; alien_was = true }
#endif
#ifdef STRIP
  :: atomic { !calm && phase == Running && pod[attempt] != absent ->
       printf("somebody takes the finalizer off pod %d and deletes it\n", attempt);
       pod[attempt] = absent }
#endif
#ifdef REQUESTS
  :: atomic { !calm && !spec_cancel && !terminal ->
       printf("user: cancel\n");
       spec_cancel = true; job_changes() }
  :: atomic { !calm && !spec_suspend && !was_suspended && !terminal ->
       printf("user: suspend\n");
       spec_suspend = true; was_suspended = true; job_changes() }
  :: atomic { spec_suspend ->
       printf("user: resume\n");
       spec_suspend = false; job_changes() }
#endif
#ifdef REST
  :: atomic { !calm -> calm = true }
#endif
  od
}

#ifdef REST
/* Once faults stop every job ends. No fairness is needed: a run without faults has no cycle. */
ltl L2_Ends { [] (calm -> <> (phase == Succeeded || phase == Failed || phase == Cancelled)) }
#endif

init { atomic { run replica(0); run replica(1); run world() } }
