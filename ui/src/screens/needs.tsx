// Which jobs wait for a person, grouped by cause.
import { useScreen } from "../follow";
import type { NeedsScreen } from "../model";
import { Rows } from "../parts/rows";
import { Coded, Moment } from "../parts/text";
import { addressOf } from "../session";

export function Needs() {
  const { screen, refused } = useScreen<NeedsScreen>({ screen: "needs" });
  if (refused) return <p class="wrong" role="alert">{refused}</p>;
  if (!screen) return <p>Reading the jobs.</p>;
  return (
    <>
      <h1>Needs you</h1>
      {screen.places.map((one) => (
        <section key={one.what} class="cause">
          <h2 class="break">{one.what}</h2>
          <p><Coded text={one.act} /></p>
          <p class="note"><a href={addressOf(one.screen)}>More</a></p>
        </section>
      ))}
      {screen.causes.length === 0 && screen.places.length === 0 ? (
        <p class="good-news">
          No job needs a person. {screen.total} jobs are there: <a href={addressOf("jobs")}>all jobs</a>.
        </p>
      ) : null}
      {screen.causes.map((cause) => {
        return (
          <section key={cause.kind + cause.reason} class="cause">
            <h2>
              {cause.count === 1 ? "1 job" : `${cause.count} jobs`}: {cause.what}
            </h2>
            <p><Coded text={cause.act} /></p>
            <p class="note">
              {cause.kind}, {cause.reason}
              {cause.since ? <>; the first since <Moment at={cause.since} /></> : null}
              {cause.by ? <>; the next step <Moment at={cause.by} /></> : null}.{" "}
              <a href={addressOf("jobs", { filter: cause.filter })}>All of them</a>
              {cause.link ? <>, <a href={cause.link} rel="noreferrer">what the manual says</a></> : null}
            </p>
            <Rows rows={cause.jobs} label={`Jobs: ${cause.what}`} />
          </section>
        );
      })}
    </>
  );
}
