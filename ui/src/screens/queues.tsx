// Queues: permits, who holds them, who waits.
import { useScreen } from "../follow";
import type { Queue } from "../model";
import { Rows } from "../parts/rows";
import { Command, Moment } from "../parts/text";

export function Queues() {
  const { screen, refused } = useScreen<{ error?: string; queues?: Queue[] }>({ screen: "queues" });
  const wrong = refused || screen?.error;
  if (wrong) return <p class="wrong" role="alert">{wrong}</p>;
  if (!screen?.queues) return <p>Reading the queues.</p>;
  return (
    <>
      <h1>Queues</h1>
      {screen.queues.length === 0 ? <p>There is no JobQueue here.</p> : null}
      {screen.queues.map((queue) => (
        <section key={`${queue.ns}/${queue.name}`}>
          <h2 class="break">{queue.ns}/{queue.name}</h2>
          <p>
            {queue.concurrency > 0
              ? `${queue.running} of ${queue.concurrency} permits are in use`
              : `${queue.running} jobs have a permit, without a limit`}
            ; {queue.waiting} wait
            {queue.oldest ? <>, the first since <Moment at={queue.oldest} /></> : null}.
          </p>
          {queue.hold ? (
            <>
              <p class="wrong">The queue is held (spec.hold): nothing starts. To let it go on:</p>
              {queue.command ? <Command text={queue.command} /> : null}
            </>
          ) : null}
          {!queue.hold && queue.reason ? <p>{queue.reason}: {queue.message}</p> : null}
          <h3>Who holds a permit</h3>
          <Rows rows={queue.holders} label={`Holders of ${queue.name}`} />
          <h3>Who waits</h3>
          <p class="note">By priority, then by age; one whose key has all its permits lets others pass{queue.waiting > queue.waiters.length ? `, the first ${queue.waiters.length}` : ""}.</p>
          <Rows rows={queue.waiters} label={`Jobs that wait in ${queue.name}`} />
        </section>
      ))}
    </>
  );
}
