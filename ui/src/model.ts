// What the plugin sends: docs/explain-model.md, and plugin/ui/screens.h.

export type MomentForm = "moment" | "due" | "ago" | "for" | "clock";
export type Part = string | { time: string; as: MomentForm };

export interface Sentence {
  text?: string;
  time?: string;
  parts?: Part[];
}

export interface Fact extends Sentence {
  label: string;
  more?: Sentence[];
  words?: string;
}

export interface Run {
  index: number;
  attempt: number;
  pod?: string;
  node?: string;
  worker?: string;
  start?: string;
  nextAttempt?: string;
}

export interface Runs extends Partial<Fact> {
  wanted: number;
  succeeded: number;
  failed: number;
  open: number;
  completedIndexes?: string;
  failedIndexes?: string;
  begun: Run[];
}

export interface Stage {
  name: string;
  phase: string;
  current: boolean;
  start?: string;
  end?: string;
  note?: string;
}

export interface Attempt {
  attempt: number;
  index?: number;
  state: string;
  waits: boolean;
  count: number;
  start: string;
  end?: string;
  note?: string;
  words?: string;
}

export interface Bound {
  letter: string;
  name: string;
  time: string;
}

export interface Model {
  job: {
    namespace: string;
    name: string;
    uid: string;
    phase?: string;
    queue?: string;
    workerPool?: string;
    hasEnded: boolean;
    attempt: number;
    created?: string;
    ended?: string;
  };
  state: string;
  summary: Sentence;
  reason?: string;
  link?: string;
  needsPerson: boolean;
  facts: string[];
  advice: { text: string; commands: string[] };
  runs: Runs;
  stages: Stage[];
  attempts: Attempt[];
  bounds: Bound[];
  [fact: string]: unknown;
}

export interface Row {
  ns: string;
  name: string;
  uid: string;
  phase: string;
  rank: number;
  ended: boolean;
  attempt: number;
  failures: number;
  stalled?: boolean;
  reason?: string;
  message?: string;
  stage?: string;
  queue?: string;
  pool?: string;
  place?: string;
  completions?: string;
  created?: string;
  since?: string;
  by?: string;
}

export interface Cause {
  reason: string;
  kind: string;
  what: string;
  act: string;
  link?: string;
  filter: string;
  count: number;
  since?: string;
  by?: string;
  jobs: Row[];
}

export interface JobsScreen {
  matching: number;
  total: number;
  offset: number;
  phases: Record<string, number>;
  rows: Row[];
}
export interface NeedsScreen {
  total: number;
  places: { screen: string; what: string; act: string }[];
  causes: Cause[];
}
export interface JobEvent {
  type: string;
  reason: string;
  note: string;
  count: number;
  time?: string;
}
export interface JobScreen {
  error?: string;
  model?: Model;
  events?: JobEvent[];
  suspended?: boolean;
  priority?: number;
}
export interface Queue {
  ns: string;
  name: string;
  hold: boolean;
  concurrency: number;
  running: number;
  waiting: number;
  oldest?: string;
  reason?: string;
  message?: string;
  command?: string; // lets a held queue go on
  holders: Row[];
  waiters: Row[];
}
export interface Pool {
  ns: string;
  name: string;
  most: number;
  workers: number;
  starting: number;
  draining: number;
  slots: number;
  busySlots: number;
  waiting: number;
  failedStarts: number;
  message?: string;
  jobs: Row[];
}
export interface OperatorScreen {
  error?: string;
  replicas: { name: string; ns: string; alive: boolean; shards: number; renewed?: string }[];
  lamps: { name: string; good: boolean; text: string }[];
}

// One event of a stream.
export interface Envelope<Screen> {
  now: string;
  scope: string; // the cluster and the namespaces that all this is of
  asOf?: string; // where there is trouble: when the API server answered last
  synced: boolean;
  trouble: string;
  screen?: Screen; // none: what was sent last is still so
}
