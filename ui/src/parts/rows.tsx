// A short list of jobs, with a link to each.
import type { Row } from "../model";
import { addressOf } from "../session";
import { Age, Moment, Phase } from "./text";

export function jobAddress(job: { ns: string; name: string }): string {
  return addressOf("job", { ns: job.ns, name: job.name });
}

export function Rows({ rows, label }: { rows: Row[]; label: string }) {
  if (rows.length === 0) return <p class="note">None.</p>;
  return (
    <div class="wide" tabIndex={0} role="group" aria-label={label}>
      <table>
        <thead>
          <tr><th>Job</th><th>Phase</th><th>Why</th><th>Since</th><th>By</th></tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.uid}>
              <td class="break"><a href={jobAddress(row)}>{row.ns}/{row.name}</a></td>
              <td><Phase of={row.phase} stalled={row.stalled} /></td>
              <td class="break">{row.reason}{row.message ? `: ${row.message}` : ""}</td>
              <td><Age of={row.since} /></td>
              <td><Moment at={row.by} /></td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
