// A table of all jobs, sorted and filtered over all. The browser has a window of a hundred rows.
import { signal } from "@preact/signals";
import { Virtualizer, elementScroll, observeElementOffset, observeElementRect } from "@tanstack/virtual-core";
import { useEffect, useReducer, useRef, useState } from "preact/hooks";
import { useScreen } from "../follow";
import type { JobsScreen, Row } from "../model";
import { Actions, type Chosen } from "../parts/actions";
import { jobAddress } from "../parts/rows";
import { Age, Phase } from "../parts/text";
import { focusFilter, place, replacePlace } from "../session";

const rowHeight = 36;
const windowSize = 100;

const columns = [
  ["name", "Job"], ["phase", "Phase"], ["reason", "Why"], ["since", "Since"], ["queue", "Queue"],
  ["node", "Node"], ["age", "Age"],
] as const;

// By UID. They stay while the person looks at another screen.
const chosenJobs = signal<Map<string, Chosen>>(new Map());

export function Jobs() {
  const filter = place.value.query.get("filter") ?? "";
  const sort = place.value.query.get("sort") ?? "worst";
  const reverse = place.value.query.get("reverse") ?? "";
  const grid = useRef<HTMLDivElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const [offset, setOffset] = useState(0);
  const chosen = chosenJobs.value;
  const setChosen = (to: (all: Map<string, Chosen>) => Map<string, Chosen>) => {
    chosenJobs.value = to(chosenJobs.value);
  };
  const [cursor, setCursor] = useState({ index: 0, uid: "" });
  const { screen, refused } = useScreen<JobsScreen>({
    screen: "jobs", filter, sort, reverse, offset: String(offset),
  });
  const change = (query: Record<string, string>) => {
    setOffset(0);
    setCursor({ index: 0, uid: "" });
    box.current?.scrollTo(0, 0);
    replacePlace("jobs", { filter, sort, reverse, ...query });
  };
  const total = screen?.matching ?? 0;
  const list = useVirtual(box, total);
  const items = list?.getVirtualItems() ?? [];
  const first = items[0]?.index ?? 0;
  const last = items[items.length - 1]?.index ?? 0;
  useEffect(() => {
    if (first < offset || last >= offset + windowSize) {
      setOffset(Math.max(0, Math.floor((first + last) / 2) - windowSize / 2));
    }
  }, [first, last, offset]);
  const rowAt = (index: number): Row | undefined =>
    screen ? screen.rows[index - screen.offset] : undefined;
  // The cursor stays on its job when the order changes.
  const moved = screen && cursor.uid ? screen.rows.findIndex((row) => row.uid === cursor.uid) : -1;
  const line = screen && moved >= 0 ? screen.offset + moved : cursor.index;
  const toggle = (row: Row) =>
    setChosen((all) => {
      const changed = new Map(all);
      if (!changed.delete(row.uid)) changed.set(row.uid, { ns: row.ns, name: row.name, uid: row.uid });
      return changed;
    });
  const move = (to: number) => {
    const next = Math.max(0, Math.min(total - 1, to));
    setCursor({ index: next, uid: rowAt(next)?.uid ?? "" });
    list?.scrollToIndex(next);
  };
  const onKey = (event: KeyboardEvent) => {
    const under = rowAt(line);
    // Where its job has gone, another one is below the cursor: that one is not meant.
    const row = !cursor.uid || under?.uid === cursor.uid ? under : undefined;
    if (event.key === "j" || event.key === "ArrowDown") move(line + 1);
    else if (event.key === "k" || event.key === "ArrowUp") move(line - 1);
    else if (event.key === "Enter" && row && event.target === grid.current) location.hash = jobAddress(row);
    else if (event.key === " " && row && event.target === grid.current) toggle(row);
    else return;
    event.preventDefault();
  };
  const at = rowAt(line);
  useEffect(() => {
    if (moved >= 0 && line !== cursor.index) setCursor({ index: line, uid: cursor.uid });
  }, [line, cursor]);
  const pin = () => setCursor({ index: line, uid: at?.uid ?? "" });
  return (
    <>
      <h1>Jobs</h1>
      <Filter text={filter} change={(text) => change({ filter: text })} wrong={refused} />
      {screen ? <Phases screen={screen} change={(text) => change({ filter: text })} /> : null}
      <p class="note">
        {screen ? `${total} of ${screen.total} jobs` : "Reading the jobs."}
        {chosen.size > 0 ? `, ${chosen.size} chosen` : ""}
      </p>
      {chosen.size > 0 ? (
        <section aria-label="The chosen jobs">
          <Actions jobs={[...chosen.values()]} />
          <button type="button" onClick={() => setChosen(() => new Map())}>Choose none</button>
        </section>
      ) : null}
      <div class="grid" role="grid" ref={grid} tabIndex={0} onKeyDown={onKey} onFocus={() => cursor.uid || pin()} aria-rowcount={total + 1}
           aria-label="Jobs: j and k move, Enter opens, Space chooses"
           aria-activedescendant={at ? `row-${at.uid}` : undefined}>
        <div role="row" aria-rowindex={1} class="row head">
          <span role="columnheader"><span class="hidden">Chosen</span></span>
          {columns.map(([key, label]) => (
            <span role="columnheader" key={key}
                  aria-sort={sort !== key ? "none" : reverse ? "descending" : "ascending"}>
              <button type="button"
                      onClick={() => change({ sort: key, reverse: sort === key && !reverse ? "true" : "" })}>
                {label}{sort === key ? (reverse ? " ▼" : " ▲") : ""}
              </button>
            </span>
          ))}
        </div>
        <div class="scroll" role="rowgroup" ref={box} tabIndex={-1}>
          <div role="presentation" style={{ height: `${total * rowHeight}px`, position: "relative" }}>
            {items.map((item) => {
              const row = rowAt(item.index);
              return (
                <div role="row" key={row?.uid ?? item.index} id={row ? `row-${row.uid}` : undefined}
                     aria-rowindex={item.index + 2}
                     class={`row${item.index === line ? " cursor" : ""}`}
                     style={{ position: "absolute", top: `${item.start}px`, height: `${rowHeight}px` }}>
                  {row ? <Cells row={row} chosen={chosen.has(row.uid)} toggle={() => toggle(row)} /> : (
                    <span role="gridcell" class="note">…</span>
                  )}
                </div>
              );
            })}
          </div>
        </div>
      </div>
    </>
  );
}

function Cells({ row, chosen, toggle }: { row: Row; chosen: boolean; toggle: () => void }) {
  return (
    <>
      <span role="gridcell">
        <input type="checkbox" checked={chosen} onChange={toggle}
               aria-label={`Choose ${row.ns}/${row.name}`} />
      </span>
      <span role="gridcell"><a href={jobAddress(row)}>{row.ns}/{row.name}</a></span>
      <span role="gridcell"><Phase of={row.phase} stalled={row.stalled} /></span>
      <span role="gridcell" title={row.message}>{row.reason ?? ""}</span>
      <span role="gridcell"><Age of={row.since} /></span>
      <span role="gridcell">{row.queue ?? ""}</span>
      <span role="gridcell">{row.place ?? ""}</span>
      <span role="gridcell"><Age of={row.created} /></span>
    </>
  );
}

function Filter({ text, change, wrong }: { text: string; change: (text: string) => void; wrong: string }) {
  const box = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (focusFilter.value) box.current?.focus();
  }, []);
  return (
    <form role="search" onSubmit={(event) => {
      event.preventDefault();
      change(text);
    }}>
      <label for="filter">Filter</label>
      <input id="filter" ref={box} type="search" value={text} autocomplete="off" spellcheck={false}
             aria-describedby="filter-help" aria-invalid={wrong !== ""}
             onInput={(event) => change(event.currentTarget.value)} />
      <p id="filter-help" class="note">
        phase:Running reason:Queued queue:night pool:gpu node:node-1 ns:media label:team=film age&gt;1d
        since&lt;5m, or a part of the name
      </p>
      {wrong ? <p class="wrong" role="alert">{wrong}</p> : null}
    </form>
  );
}

function Phases({ screen, change }: { screen: JobsScreen; change: (filter: string) => void }) {
  return (
    <p class="counts">
      {Object.entries(screen.phases).map(([phase, count]) => (
        <button key={phase} type="button" onClick={() => change(`phase:${phase}`)}>
          <Phase of={phase} /> {count}
        </button>
      ))}
    </p>
  );
}

// The rows that are in view, by the library's arithmetic.
function useVirtual(box: { current: HTMLDivElement | null }, count: number) {
  const [, draw] = useReducer((n: number) => n + 1, 0);
  const [list] = useState(
    () =>
      new Virtualizer<HTMLDivElement, HTMLDivElement>({
        count: 0,
        getScrollElement: () => box.current,
        estimateSize: () => rowHeight,
        overscan: 5,
        scrollToFn: elementScroll,
        observeElementRect,
        observeElementOffset,
        onChange: () => draw(undefined as never),
      }),
  );
  list.setOptions({ ...list.options, count });
  useEffect(() => {
    const end = list._didMount();
    list._willUpdate();
    draw(undefined as never);
    return end;
  }, []);
  useEffect(() => list._willUpdate());
  return list;
}
