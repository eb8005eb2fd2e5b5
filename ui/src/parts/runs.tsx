// Runs as a map of squares, on a canvas: 100,000 of them are one picture. Its words are beside it.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Runs } from "../model";
import { stateAt, statesOf, type RunState } from "./ranges";

const labels: Record<RunState, string> = {
  rest: "has not begun", done: "succeeded", waits: "waits for its next attempt", open: "is open",
  failed: "failed for good",
};

function sizeFor(count: number): number {
  return count > 20000 ? 3 : count > 4000 ? 5 : count > 800 ? 8 : 14;
}

export function RunsMap({ runs }: { runs: Runs }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [said, say] = useState("");
  const size = sizeFor(runs.wanted);
  const states = statesOf(runs);

  const columns = () => Math.max(1, Math.floor((canvas.current?.clientWidth ?? 600) / size));
  useEffect(() => {
    const element = canvas.current;
    const context = element?.getContext("2d");
    if (!element || !context) return;
    const across = columns();
    const ratio = devicePixelRatio || 1;
    const height = Math.ceil(runs.wanted / across) * size;
    element.style.height = `${height}px`;
    element.width = across * size * ratio;
    element.height = height * ratio;
    context.scale(ratio, ratio);
    const style = getComputedStyle(element);
    const colours: Record<RunState, string> = {
      rest: style.getPropertyValue("--rest"), done: style.getPropertyValue("--good"),
      waits: style.getPropertyValue("--wait"), open: style.getPropertyValue("--open"),
      failed: style.getPropertyValue("--bad"),
    };
    for (let i = 0; i < runs.wanted; ++i) {
      const state = stateAt(states, i);
      context.fillStyle = colours[state];
      const x = (i % across) * size;
      const y = Math.floor(i / across) * size;
      context.fillRect(x, y, size - 1, size - 1);
      // Where there is room, each has a shape of its own, too: a hole, a ring, a lower half.
      if (size < 8) continue;
      if (state === "failed") context.clearRect(x + size / 2 - 1, y + size / 2 - 1, 2, 2);
      if (state === "open") context.clearRect(x + 1, y + 1, size - 3, size - 3);
      if (state === "waits") context.clearRect(x, y, size - 1, size / 2);
    }
  });

  const point = (event: MouseEvent) => {
    const box = canvas.current?.getBoundingClientRect();
    if (!box) return;
    const index =
      Math.floor((event.clientY - box.top) / size) * columns() +
      Math.floor((event.clientX - box.left) / size);
    say(index < runs.wanted ? `run ${index} ${labels[stateAt(states, index)]}` : "");
  };

  const text = `${runs.succeeded} of ${runs.wanted} runs succeeded, ${runs.failed} failed, ${runs.open} open`;
  return (
    <section aria-labelledby="runs-title">
      <h2 id="runs-title">Runs</h2>
      <p class="legend">
        <i class="good" /> succeeded <i class="open" /> open <i class="wait" /> waits{" "}
        <i class="bad" /> failed <i class="rest" /> not begun
      </p>
      <canvas ref={canvas} role="img" aria-label={text} onMouseMove={point} />
      <p>{said || text}</p>
      {runs.failedIndexes ? <p class="break">Failed: {runs.failedIndexes}</p> : null}
    </section>
  );
}
