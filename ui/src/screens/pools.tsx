// Pools: workers, slots, what runs on them.
import { useScreen } from "../follow";
import type { Pool } from "../model";
import { Rows } from "../parts/rows";

export function Pools() {
  const { screen, refused } = useScreen<{ error?: string; pools?: Pool[] }>({ screen: "pools" });
  const wrong = refused || screen?.error;
  if (wrong) return <p class="wrong" role="alert">{wrong}</p>;
  if (!screen?.pools) return <p>Reading the pools.</p>;
  return (
    <>
      <h1>Pools</h1>
      {screen.pools.length === 0 ? <p>There is no WorkerPool here.</p> : null}
      {screen.pools.map((pool) => (
        <section key={`${pool.ns}/${pool.name}`}>
          <h2 class="break">{pool.ns}/{pool.name}</h2>
          <p>
            {pool.workers} of at most {pool.most} workers
            {pool.starting > 0 ? `, ${pool.starting} starting` : ""}
            {pool.draining > 0 ? `, ${pool.draining} draining` : ""}; {pool.busySlots} of {pool.slots} slots
            busy; {pool.waiting} runs wait.
          </p>
          {pool.failedStarts > 0 ? (
            <p class="wrong">
              {pool.failedStarts === 1 ? "The last worker could not start." : `${pool.failedStarts} workers in a row could not start.`}
            </p>
          ) : null}
          {pool.message ? <p class="break">{pool.message}</p> : null}
          <h3>Its jobs</h3>
          <Rows rows={pool.jobs} label={`Jobs of ${pool.name}`} />
        </section>
      ))}
    </>
  );
}
