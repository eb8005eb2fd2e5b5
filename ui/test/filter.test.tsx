import { render } from "preact";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Jobs } from "../src/screens/jobs";
import { place, startPlaces } from "../src/session";

beforeEach(() => {
  vi.stubGlobal("fetch", () => new Promise(() => undefined));
  Element.prototype.scrollTo = () => undefined; // jsdom draws nothing
  history.replaceState(null, "", "#/jobs");
  startPlaces();
  render(<Jobs />, document.body);
});

afterEach(() => {
  render(null, document.body);
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

// A letter comes after the render, which is a microtask, and before its effects, which wait for the
// next frame.
async function type(text: string): Promise<string> {
  const box = document.querySelector<HTMLInputElement>("#filter")!;
  for (const letter of text) {
    box.value += letter;
    box.dispatchEvent(new Event("input", { bubbles: true }));
    for (let turn = 0; turn < 10; ++turn) await Promise.resolve();
  }
  return box.value;
}

it("keeps each letter of one who types faster than the screen shows them", async () => {
  expect(await type("ns:media phase:Running")).toBe("ns:media phase:Running");
  expect(place.value.query.get("filter")).toBe("ns:media phase:Running");
});

// Safari throws at the hundredth change in 30 s, Chromium leaves the address as it was.
it.each([() => undefined, () => { throw new DOMException("too often", "SecurityError"); }])(
  "keeps letters that a browser does not write into its address, and writes them later", async (refused) => {
    vi.useFakeTimers();
    const replace = vi.spyOn(history, "replaceState").mockImplementation(refused);
    expect(await type("ns:media")).toBe("ns:media");
    expect(place.value.query.get("filter")).toBe("ns:media");
    expect(location.hash).toBe("#/jobs");
    replace.mockRestore();
    vi.advanceTimersByTime(1000);
    expect(location.hash).toBe("#/jobs?filter=ns%3Amedia&sort=worst");
    vi.useRealTimers();
  });

it("does not write an address that the person has left", async () => {
  vi.useFakeTimers();
  const replace = vi.spyOn(history, "replaceState").mockImplementation(() => undefined);
  await type("ns:media");
  replace.mockRestore();
  history.replaceState(null, "", "#/queues");
  dispatchEvent(new HashChangeEvent("hashchange"));
  vi.advanceTimersByTime(5000);
  expect(location.hash).toBe("#/queues");
  vi.useRealTimers();
});
