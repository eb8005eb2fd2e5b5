import { describe, expect, it } from "vitest";
import { splitEvents } from "../src/api";
import { stateAt, statesOf } from "../src/parts/ranges";
import { scaleOf } from "../src/parts/timeline";
import { addressOf, readPlace } from "../src/session";

describe("runs", () => {
  it("show the state that a reader looks for first", () => {
    const states = statesOf({
      wanted: 10, completedIndexes: "0-3,5", failedIndexes: "4",
      begun: [{ index: 6 }, { index: 7, nextAttempt: "2026-07-01T12:00:00Z" }, { index: 99 }],
    });
    expect([...states.keys()].map((index) => stateAt(states, index))).toEqual([
      "done", "done", "done", "done", "failed", "done", "open", "waits", "rest", "rest",
    ]);
  });
  it("are 100,000 bytes for 100,000 runs", () => {
    expect(statesOf({ wanted: 100000, completedIndexes: "0-99999", begun: [] }).length).toBe(100000);
  });
});

describe("events of a stream", () => {
  it("are split at blank lines, whatever the pieces that arrive", () => {
    expect(splitEvents('data: {"a":1}\n\n:\n\ndata: {"b"')).toEqual({
      data: ['{"a":1}'], rest: 'data: {"b"',
    });
  });
});

describe("the timeline", () => {
  const noon = Date.parse("2026-07-01T12:00:00Z");
  const attempt = { attempt: 1, state: "running", waits: false, count: 1, start: "2026-07-01T11:59:00Z" };
  it("has room for a bound that is near", () => {
    const bound = { letter: "L", name: "lost", time: "2026-07-01T12:01:00Z" };
    expect(scaleOf([attempt], [bound], noon).to).toBe(Date.parse(bound.time));
  });
  it("is not squeezed by a bound that is far", () => {
    const bound = { letter: "D", name: "deadline", time: "2026-07-02T12:00:00Z" };
    expect(scaleOf([attempt], [bound], noon).to).toBe(noon);
  });
});

describe("the address", () => {
  it("holds the screen and its filter", () => {
    const place = readPlace(addressOf("jobs", { filter: "phase:Running age>1h", sort: "" }));
    expect(place.screen).toBe("jobs");
    expect(place.query.get("filter")).toBe("phase:Running age>1h");
    expect(place.query.has("sort")).toBe(false);
  });
  it("is Needs you where it says nothing", () => {
    expect(readPlace("").screen).toBe("needs");
  });
});
