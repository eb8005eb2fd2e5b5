// Attempts to scale, with their bounds as marks and `now` moving; and the same as a table.
import { clockText, now, spanText } from "../clock";
import type { Attempt, Bound } from "../model";

const width = 900;
const labelWidth = 150;
const rowHeight = 24;

export interface Scale {
  from: number;
  to: number;
}

// All attempts and now; a bound that is far away would leave no room for them.
export function scaleOf(attempts: Attempt[], bounds: Bound[], at: number): Scale {
  const from = Math.min(...attempts.map((one) => Date.parse(one.start)));
  let to = Math.max(at, ...attempts.map((one) => (one.end ? Date.parse(one.end) : at)));
  const past = Math.max(1000, at - from);
  for (const bound of bounds) {
    const time = Date.parse(bound.time);
    if (time - at <= 3 * past) to = Math.max(to, time);
  }
  return { from, to: Math.max(to, from + 1000) };
}

export function labelOf(attempt: Attempt): string {
  const run = attempt.index === undefined ? "" : ` run ${attempt.index}`;
  return `${attempt.attempt}${run} ${attempt.state}`;
}

function classOf(attempt: Attempt): string {
  if (attempt.waits) return "wait";
  if (!attempt.end) return "open";
  return attempt.state === "Succeeded" ? "good" : "bad";
}

export function Timeline({ attempts, bounds, manyRuns }: {
  attempts: Attempt[];
  bounds: Bound[];
  manyRuns: boolean;
}) {
  if (attempts.length === 0) return null;
  const at = now.value;
  const scale = scaleOf(attempts, bounds, at);
  const x = (time: number) =>
    labelWidth +
    Math.min(1, Math.max(0, (time - scale.from) / (scale.to - scale.from))) * (width - labelWidth - 10);
  const height = attempts.length * rowHeight;
  return (
    <section aria-labelledby="attempts-title">
      <h2 id="attempts-title">{manyRuns ? "Last ends of attempts" : "Attempts"}</h2>
      <div class="wide" tabIndex={0} role="group" aria-label="Attempts as a picture">
        <svg viewBox={`0 0 ${width} ${height + 40}`} aria-hidden="true" class="timeline">
          {attempts.map((attempt, row) => {
            const start = x(Date.parse(attempt.start));
            const end = x(attempt.end ? Date.parse(attempt.end) : at);
            const y = row * rowHeight;
            return (
              <g key={`${attempt.attempt}-${attempt.index}-${attempt.start}`}>
                <text x="0" y={y + 16}>{labelOf(attempt)}</text>
                <rect class={classOf(attempt)} x={start} y={y + 5} width={Math.max(2, end - start)}
                      height={rowHeight - 10} />
              </g>
            );
          })}
          {bounds.filter((bound) => Date.parse(bound.time) <= scale.to).map((bound) => (
            <g key={bound.letter + bound.name}>
              <line class="mark" x1={x(Date.parse(bound.time))} x2={x(Date.parse(bound.time))}
                    y1={height - rowHeight} y2={height + 4} />
              <text x={x(Date.parse(bound.time)) - 4} y={height + 18}>{bound.letter}</text>
            </g>
          ))}
          <line class="now" x1={x(at)} x2={x(at)} y1="0" y2={height + 4} />
          <text x={Math.min(x(at), width - 30)} y={height + 34} text-anchor="middle">now</text>
        </svg>
      </div>
      {bounds.length > 0 ? (
        <ul class="bounds">
          {bounds.map((bound) => {
            const left = Date.parse(bound.time) - at;
            return (
              <li key={bound.letter + bound.name}>
                <b>{bound.letter}</b> {bound.name}{" "}
                {left > 0 ? `in ${spanText(Math.ceil(left / 1000) * 1000)}` : `due ${spanText(-left)} ago`}{" "}
                ({clockText(Date.parse(bound.time), at)} UTC)
              </li>
            );
          })}
        </ul>
      ) : null}
      <details>
        <summary>Attempts as a table</summary>
        <div class="wide" tabIndex={0} role="group" aria-label="Attempts as a table">
          <table>
            <thead>
              <tr><th>Attempt</th><th>From (UTC)</th><th>To</th><th>Took</th><th>How</th></tr>
            </thead>
            <tbody>
              {attempts.map((attempt) => (
                <tr key={`${attempt.attempt}-${attempt.index}-${attempt.start}`}>
                  <td>{labelOf(attempt)}</td>
                  <td>{clockText(Date.parse(attempt.start), at)}</td>
                  <td>{attempt.end ? clockText(Date.parse(attempt.end), at) : "now"}</td>
                  <td>{spanText((attempt.end ? Date.parse(attempt.end) : at) - Date.parse(attempt.start))}</td>
                  <td>
                    {attempt.note}
                    {attempt.words ? <pre>{attempt.words}</pre> : null}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </section>
  );
}
