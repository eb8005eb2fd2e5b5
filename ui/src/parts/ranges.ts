// "0-7,9" as a test of membership: an array of states by index.
export type RunState = "rest" | "done" | "failed" | "open" | "waits";

export interface Square {
  first: number;
  last: number;
  state: RunState;
}

function ranges(text: string): [number, number][] {
  return text
    .split(",")
    .filter(Boolean)
    .map((part) => {
      const [first = 0, last = first] = part.split("-").map(Number);
      return [first, last];
    });
}

// Indexes of 0 to 99,999 in one byte each.
const codes: RunState[] = ["rest", "done", "waits", "open", "failed"];

export interface RunsInput {
  wanted: number;
  completedIndexes?: string | undefined;
  failedIndexes?: string | undefined;
  begun: { index: number; nextAttempt?: string }[];
}

export function statesOf(runs: RunsInput): Uint8Array {
  const states = new Uint8Array(runs.wanted);
  const fill = (text: string | undefined, code: number) => {
    for (const [first, last] of ranges(text ?? "")) states.fill(code, first, last + 1);
  };
  fill(runs.completedIndexes, codes.indexOf("done"));
  for (const run of runs.begun) {
    if (run.index < states.length) states[run.index] = codes.indexOf(run.nextAttempt ? "waits" : "open");
  }
  fill(runs.failedIndexes, codes.indexOf("failed"));
  return states;
}

export function stateAt(states: Uint8Array, index: number): RunState {
  return codes[states[index] ?? 0] ?? "rest";
}
