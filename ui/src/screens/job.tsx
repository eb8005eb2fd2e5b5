// One job: the sentence first, then what, why, since, next, by, spent, and what you can do.
import { useState } from "preact/hooks";
import { get } from "../api";
import { useScreen } from "../follow";
import type { Fact, JobScreen, Model } from "../model";
import { Actions } from "../parts/actions";
import { RunsMap } from "../parts/runs";
import { Coded, Commands, Moment, Phase, Words } from "../parts/text";
import { Timeline } from "../parts/timeline";
import { spanText, now } from "../clock";
import { place } from "../session";

export function Job() {
  const ns = place.value.query.get("ns") ?? "";
  const name = place.value.query.get("name") ?? "";
  const { screen, refused } = useScreen<JobScreen>({ screen: "job", ns, name });
  const wrong = refused || screen?.error;
  if (wrong) return <p class="wrong" role="alert">{wrong}</p>;
  if (!screen?.model) return <p>Reading {ns}/{name}.</p>;
  const { model } = screen;
  const target = [{ ns, name, uid: model.job.uid }];
  return (
    <>
      <h1 class="break">{ns}/{name}</h1>
      <Summary model={model} />
      <Facts model={model} />
      <section aria-labelledby="can-title">
        <h2 id="can-title">You can</h2>
        {model.advice.text ? <p><Coded text={model.advice.text.replace(/^Nothing:/, "You need do nothing:")} /></p> : null}
        <Commands texts={model.advice.commands} />
        <Actions jobs={target} only={(verb) => fits(verb, screen, model)} priority={screen.priority} />
      </section>
      {model.runs.wanted > 1 ? <RunsMap runs={model.runs} /> : null}
      <Stages model={model} />
      <Timeline attempts={model.attempts} bounds={model.bounds} manyRuns={model.runs.wanted > 1} />
      <Log ns={ns} name={name} />
      <Events screen={screen} />
      <Text ns={ns} name={name} path="/api/yaml" title="YAML" />
      {model.link ? (
        <p><a href={model.link} rel="noreferrer">What the manual says of {model.reason}</a></p>
      ) : null}
    </>
  );
}

function fits(verb: string, screen: JobScreen, model: Model): boolean {
  if (model.job.hasEnded) {
    return verb === "retry" || (verb === "retry-failed" && Boolean(model.runs.failedIndexes));
  }
  if (verb === "suspend") return !screen.suspended;
  if (verb === "resume") return Boolean(screen.suspended);
  if (verb === "priority") return Boolean(model.job.queue);
  return verb === "cancel";
}

// The first thing that a person reads: what it is, why, and what to do.
function Summary({ model }: { model: Model }) {
  // "To run the same work again:" introduces a command, which stands below.
  const act = model.advice.text.endsWith(":") ? "" : model.advice.text;
  return (
    <p class="sentence break">
      <Phase of={model.job.phase} stalled={model.needsPerson} />: <Words of={model.summary} />{/[.:]$/.test(model.summary.text ?? "") ? "" : "."}
      {act ? <><br />What to do: <Coded text={act.charAt(0).toLowerCase() + act.slice(1)} /></> : null}
    </p>
  );
}

function Facts({ model }: { model: Model }) {
  return (
    <dl>
      <dt>State</dt>
      <dd>{model.state}</dd>
      {model.facts.map((key) => {
        const fact = model[key] as Fact;
        return (
          <>
            <dt>{fact.label}</dt>
            <dd>
              <Words of={fact} />
              {(fact.more ?? []).map((more) => <p key={more.text}><Words of={more} /></p>)}
              {fact.words ? <pre tabIndex={0}>{fact.words}</pre> : null}
            </dd>
          </>
        );
      })}
    </dl>
  );
}

function Stages({ model }: { model: Model }) {
  if (model.stages.length === 0) return null;
  return (
    <section aria-labelledby="stages-title">
      <h2 id="stages-title">Stages</h2>
      <ol class="stages">
        {model.stages.map((stage) => (
          <li key={stage.name} aria-current={stage.current ? "step" : undefined}>
            <b>{stage.name}</b> <Phase of={stage.phase} />{" "}
            {stage.start ? spanText((stage.end ? Date.parse(stage.end) : now.value) - Date.parse(stage.start)) : ""}{" "}
            {stage.note}
          </li>
        ))}
      </ol>
    </section>
  );
}

function Events({ screen }: { screen: JobScreen }) {
  const events = screen.events ?? [];
  return (
    <section aria-labelledby="events-title">
      <h2 id="events-title">Events</h2>
      {events.length === 0 ? <p class="note">None, or none that you may read.</p> : null}
      <ul class="events">
        {events.map((event, index) => (
          <li key={index}>
            <Moment at={event.time} /> <b>{event.type === "Warning" ? "Warning, " : ""}{event.reason}</b>:{" "}
            {event.note}{event.count > 1 ? ` (${event.count} times)` : ""}
          </li>
        ))}
      </ul>
    </section>
  );
}

function Log({ ns, name }: { ns: string; name: string }) {
  return <Text ns={ns} name={name} path="/api/log" title="The log's end" pick={(answer) => (answer as { log: string }).log} />;
}

// A text that is read when somebody asks for it.
function Text({ ns, name, path, title, pick }: {
  ns: string; name: string; path: string; title: string; pick?: (answer: unknown) => string;
}) {
  const [text, setText] = useState<string | undefined>(undefined);
  const [wrong, setWrong] = useState("");
  const read = () => {
    get<unknown>(path, { ns, name })
      .then((answer) => {
        setWrong("");
        setText(pick ? pick(answer) : String(answer));
      })
      .catch((error: Error) => setWrong(error.message));
  };
  return (
    <section aria-label={title}>
      <h2>{title}</h2>
      <button type="button" onClick={read}>{text === undefined ? "Read it" : "Read it again"}</button>
      {wrong ? <p class="wrong" role="alert">{wrong}</p> : null}
      {text !== undefined ? <pre tabIndex={0} aria-label={title}>{text || "(empty)"}</pre> : null}
    </section>
  );
}
