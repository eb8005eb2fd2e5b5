// What a person may do to one job or a chosen set. The confirmation names the set and its number,
// and the action goes to those UIDs alone.
import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { get, post } from "../api";
import { Commands } from "./text";

export interface Chosen {
  ns: string;
  name: string;
  uid: string;
}

interface Verb {
  verb: string;
  label: string;
  right: "patch" | "create";
  says: string; // what the confirmation says it does
}

export const verbs: Verb[] = [
  { verb: "retry", label: "Retry", right: "create", says: "makes a new job with the same spec for" },
  {
    verb: "retry-failed", label: "Retry failed indexes", right: "create",
    says: "makes a new job of the indexes that failed for",
  },
  { verb: "cancel", label: "Cancel", right: "patch", says: "cancels, which nothing reverses," },
  { verb: "suspend", label: "Suspend", right: "patch", says: "suspends, which stops the pods until a resume," },
  { verb: "resume", label: "Resume", right: "patch", says: "lets go on" },
  { verb: "priority", label: "Set priority", right: "patch", says: "sets the priority in the queue of" },
];

interface Asked {
  verb: Verb;
  jobs: Chosen[];
  priority: number; // that the jobs have, if it is known
}
const asked = signal<Asked | undefined>(undefined);

type Rights = Record<string, boolean>;

// One button for each action. A right that is missing is said, not hidden.
export function Actions({ jobs, only, priority = 0 }: {
  jobs: Chosen[];
  only?: (verb: string) => boolean;
  priority?: number | undefined;
}) {
  const namespaces = [...new Set(jobs.map((job) => job.ns))];
  const key = namespaces.join(" ");
  const [rights, setRights] = useState<Record<string, Rights>>({});
  useEffect(() => {
    for (const ns of namespaces.slice(0, 20)) {
      if (rights[ns]) continue;
      get<Rights>("/api/rights", { ns })
        .then((known) => setRights((all) => ({ ...all, [ns]: known })))
        .catch(() => undefined);
    }
  }, [key]);
  const missing = (verb: Verb) => namespaces.filter((ns) => rights[ns]?.[verb.right] === false);
  const shown = verbs.filter((one) => !only || only(one.verb));
  const lacking = shown.filter((one) => missing(one).length > 0);
  return (
    <div class="actions">
      {shown.map((one) => (
        <button key={one.verb} type="button"
                disabled={jobs.length === 0 || missing(one).length > 0}
                onClick={() => (asked.value = { verb: one, jobs, priority })}>
          {one.label}
        </button>
      ))}
      {lacking.length > 0 ? (
        <p class="note">
          You may not {lacking.map((one) => one.label.toLowerCase()).join(", ")} in{" "}
          {[...new Set(lacking.flatMap(missing))].join(", ")}: ask for the right to{" "}
          {[...new Set(lacking.map((one) => one.right))].join(" and ")} durablejobs there.
        </p>
      ) : null}
    </div>
  );
}

interface Result {
  ns: string;
  name: string;
  ok: boolean;
  text: string;
}

export function Confirmation() {
  const dialog = useRef<HTMLDialogElement>(null);
  const [commands, setCommands] = useState<string[]>([]);
  const [results, setResults] = useState<Result[]>([]);
  const [wrong, setWrong] = useState("");
  const [priority, setPriority] = useState(0);
  const [works, setWorks] = useState(false);
  const open = asked.value;
  useEffect(() => {
    if (!open) return;
    setCommands([]);
    setResults([]);
    setWrong("");
    setPriority(open.priority);
    dialog.current?.showModal();
  }, [open]);
  useEffect(() => {
    if (!open) return;
    const body = { verb: open.verb.verb, jobs: open.jobs, priority };
    let isOld = false;
    post<{ commands: string[] }>("/api/action?ask=true", body)
      .then((answer) => isOld || setCommands(answer.commands))
      .catch((error: Error) => isOld || setWrong(error.message));
    return () => {
      isOld = true;
    };
  }, [open, priority]);
  if (!open) return null;
  const close = () => {
    dialog.current?.close();
    asked.value = undefined;
  };
  const act = () => {
    setWorks(true);
    const whose = asked.value;
    const mine = () => asked.value === whose; // another dialog may be open by then
    post<{ results: Result[] }>("/api/action", { verb: open.verb.verb, jobs: open.jobs, priority })
      .then((answer) => mine() && setResults(answer.results))
      .catch((error: Error) => mine() && setWrong(error.message))
      .finally(() => setWorks(false));
  };
  const count = open.jobs.length === 1 ? "1 job" : `${open.jobs.length} jobs`;
  return (
    <dialog ref={dialog} aria-labelledby="confirm-title" onClose={() => (asked.value = undefined)}>
      <h2 id="confirm-title">{open.verb.label}: {count}</h2>
      <p>This {open.verb.says} {count}, and no other job, whatever has its name by then:</p>
      <ul class="chosen">
        {open.jobs.slice(0, 50).map((job) => (
          <li key={job.uid}>{job.ns}/{job.name} <small>{job.uid}</small></li>
        ))}
        {open.jobs.length > 50 ? <li>and {open.jobs.length - 50} more</li> : null}
      </ul>
      {open.verb.verb === "priority" ? (
        <label>
          Priority{" "}
          <input type="number" value={priority}
                 onInput={(event) => setPriority(Math.trunc(Number(event.currentTarget.value)) || 0)} />
        </label>
      ) : null}
      {results.length === 0 ? (
        <>
          <details>
            <summary>The commands that do the same</summary>
            <Commands texts={commands.slice(0, 50)} />
            {commands.length > 50 ? <p>and {commands.length - 50} more like these</p> : null}
          </details>
          <p class="buttons">
            <button type="button" onClick={close}>Back</button>{" "}
            <button type="button" class="act" aria-disabled={works} onClick={() => works || act()}>
              {open.verb.label} {count}
            </button>
          </p>
        </>
      ) : (
        <>
          <ul role="status">
            {results.map((one) => (
              <li key={`${one.ns}/${one.name}`} class={one.ok ? "" : "wrong"}>
                {one.ns}/{one.name}: {one.ok ? "" : "not done: "}{one.text}
              </li>
            ))}
          </ul>
          <p class="buttons">
            <button type="button" ref={(button) => button?.focus()} onClick={close}>Close</button>
          </p>
        </>
      )}
      {wrong ? <p class="wrong" role="alert">{wrong}</p> : null}
    </dialog>
  );
}
