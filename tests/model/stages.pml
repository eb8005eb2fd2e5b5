/* A job of stages: which stage runs, which ended how, and the outcome, with no assumption about time.
   How one attempt comes to its end is job.pml's; here a stage has one attempt.

   Two replicas act on the job at once and whenever they like. A write records the end of the current
   stage and, with it, the start of the next: which stages are left out, what the outcome is, which stage
   begins. It is decided on one view, and it may be paused for ever, be lost, or be applied with its
   answer lost. A user may cancel at any time.

   The stages are: 0 main and 1 are needed, 2 may fail, 3 runs always.

   The macros in capitals are mutants. */

#define STAGES 4

bool S4_OneOutcome, S20_StageOnce, S21_Always;

mtype = {pending, running, succeeded, failed, skipped};
mtype = {open, success, failure, cancelled};

/* What stands in the API server. */
mtype phase[STAGES] = pending;
byte current;
mtype outcome = open;       /* FailureTarget or SuccessCriteriaMet */
mtype over = open;          /* the job's phase, once it is terminal */
bool cancel;

/* A write that is under way: made for a stage that ends so. */
typedef Write {
  bool sent;
  byte from;
  mtype how;
}
Write write[2];

/* Ghosts. */
byte begun[STAGES];         /* how often each stage began */
mtype first_outcome = open;
byte next;

#define needed(s) (s < 2)
#ifdef SKIP_ALWAYS
#define left_out(s) true
#else
#define left_out(s) (s != 3)
#endif

inline begin(s) {
  phase[s] = running;
  begun[s]++;
  assert(S20_StageOnce || begun[s] == 1)
}

/* The end of the current stage, the outcome, and the next stage: one write. */
inline apply(i) {
  d_step {
    write[i].sent && over == open;
    phase[write[i].from] = write[i].how;
    if
    :: outcome == open && write[i].how == failed && needed(write[i].from) && !cancel ->
       outcome = failure
    :: outcome == open && phase[0] == succeeded && phase[1] == succeeded -> outcome = success
    :: else
    fi;
    if
    :: first_outcome == open -> first_outcome = outcome
    :: else -> assert(S4_OneOutcome || first_outcome == outcome)
    fi;
    next = write[i].from + 1;
    do
    :: next < STAGES && (cancel || outcome == failure) && left_out(next) ->
       phase[next] = skipped;
       next++
    :: else -> break
    od;
    if
    :: next < STAGES -> current = next; begin(next)
    :: else ->
       if
#ifdef CANCEL_WINS
       :: cancel -> over = cancelled
       :: !cancel && outcome != open -> over = outcome
#else
       :: outcome != open -> over = outcome
       :: outcome == open -> over = cancelled
#endif
       fi;
       assert(S21_Always || begun[3] == 1);
       assert(S4_OneOutcome || first_outcome == open || over == first_outcome)
    fi;
#ifndef NO_COMPARE
    /* A write from an older view meets another resourceVersion. */
    write[0].sent = false;
    write[1].sent = false
#else
    write[i].sent = false
#endif
  }
}

proctype Replica(byte i) {
end:
  do
  :: !write[i].sent && over == open -> /* the view */
     atomic {
       write[i].sent = true;
       write[i].from = current;
       if
       :: write[i].how = succeeded
       :: write[i].how = failed
       fi
     }
  :: apply(i)
  :: write[i].sent -> write[i].sent = false /* lost */
  od
}

proctype User() {
  cancel = true
}

init {
  atomic {
    begin(0);
    run Replica(0);
    run Replica(1);
    run User()
  }
}
