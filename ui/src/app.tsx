import { render } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { complete, heard, scope, trouble, useToken } from "./api";
import { clockText, now, startClock } from "./clock";
import { Confirmation } from "./parts/actions";
import { Job } from "./screens/job";
import { Jobs } from "./screens/jobs";
import { Needs } from "./screens/needs";
import { Operator } from "./screens/operator";
import { Pools } from "./screens/pools";
import { Queues } from "./screens/queues";
import { addressOf, focusFilter, place, startPlaces, takeToken } from "./session";

const screens = [
  ["needs", "Needs you"], ["jobs", "Jobs"], ["queues", "Queues"], ["pools", "Pools"], ["operator", "Operator"],
] as const;

function Screen() {
  switch (place.value.screen) {
    case "jobs":
      return <Jobs />;
    case "job":
      return <Job key={place.value.query.toString()} />;
    case "queues":
      return <Queues />;
    case "pools":
      return <Pools />;
    case "operator":
      return <Operator />;
    default:
      return <Needs />;
  }
}

// What the page shows may be old: it says how old.
function Trouble() {
  const at = heard.value ? clockText(Date.parse(heard.value), now.value) : "";
  return (
    <div role="status" class={trouble.value ? "trouble" : complete.value ? "hidden" : "reading"}>
      {trouble.value
        ? `${at ? `As of ${at} UTC. ` : ""}Not current: ${trouble.value}`
        : complete.value ? "" : "These are some of the jobs. The others are being read."}
    </div>
  );
}

function App() {
  const main = useRef<HTMLElement>(null);
  const screen = place.value.screen;
  useEffect(() => {
    document.title = `${screens.find(([key]) => key === screen)?.[1] ?? place.value.query.get("name") ?? "Job"} - Holdfast ${scope.value}`;
  }, [place.value, scope.value]);
  // Whoever reads by ear, or walks by keyboard, begins at the top of a new screen.
  const shown = useRef("");
  const name = screen === "job" ? `${screen} ${place.value.query.toString()}` : screen;
  useEffect(() => {
    if (shown.current && shown.current !== name && !focusFilter.value) main.current?.focus();
    focusFilter.value = false; // the screen's own effects have run
    shown.current = name;
  }, [name]);
  useEffect(() => {
    const keys = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      const types = target instanceof HTMLInputElement && target.type !== "checkbox";
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "/" && !types) {
        event.preventDefault();
        const filter = document.getElementById("filter");
        if (filter) filter.focus();
        else {
          focusFilter.value = true;
          location.hash = addressOf("jobs");
        }
      } else if (event.key === "Escape" && !document.querySelector("dialog[open]")) {
        if (types) {
          event.preventDefault(); // which would empty a search box without a word to the page
          target.blur();
        }
        else if (place.value.screen === "job") history.back();
      } else if ((event.key === "j" || event.key === "k") && !types && !target.closest("[role=grid], dialog")) {
        document.querySelector<HTMLElement>("[role=grid]")?.focus();
      }
    };
    addEventListener("keydown", keys);
    return () => removeEventListener("keydown", keys);
  }, []);
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => {
        event.preventDefault();
        main.current?.focus();
      }}>To the content</a>
      <header>
        <b>Holdfast</b>
        <nav aria-label="Screens">
          {screens.map(([key, label]) => (
            <a key={key} href={addressOf(key)} aria-current={key === screen ? "page" : undefined}>{label}</a>
          ))}
        </nav>
        <span class="note break">{scope.value}</span>
      </header>
      <Trouble />
      <main id="main" ref={main} tabIndex={-1}><Screen /></main>
      <Confirmation />
    </>
  );
}

const token = takeToken();
const root = document.getElementById("root");
if (root) {
  if (token) {
    useToken(token);
    startClock();
    startPlaces();
    render(<App />, root);
  } else {
    root.textContent = "This address has no token: open the one that kubectl holdfast ui printed.";
  }
}
