// The operator: its replicas, its shards, and whether what it promises holds now.
import { useScreen } from "../follow";
import type { OperatorScreen } from "../model";
import { Moment } from "../parts/text";

export function Operator() {
  const { screen, refused } = useScreen<OperatorScreen>({ screen: "operator" });
  const wrong = refused || screen?.error;
  if (wrong) return <p class="wrong" role="alert">{wrong}</p>;
  if (!screen) return <p>Reading the operator's Leases.</p>;
  return (
    <>
      <h1>Operator</h1>
      <ul class="lamps">
        {screen.lamps.map((lamp) => (
          <li key={lamp.name} class={lamp.good ? "on" : "off"}>
            <span aria-hidden="true">{lamp.good ? "●" : "✗"}</span> {lamp.name}: {lamp.good ? "yes" : "NO"}, {lamp.text}
          </li>
        ))}
      </ul>
      <div class="wide" tabIndex={0} role="group" aria-label="Replicas">
        <table>
          <thead><tr><th>Replica</th><th>Namespace</th><th>State</th><th>Shards</th><th>Renewed</th></tr></thead>
          <tbody>
            {screen.replicas.map((replica) => (
              <tr key={replica.name + replica.ns}>
                <td class="break">{replica.name || "(stopped)"}</td>
                <td>{replica.ns}</td>
                <td>{replica.alive ? "alive" : "silent"}</td>
                <td>{replica.shards}</td>
                <td><Moment at={replica.renewed} /></td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="note"><a href="/licenses.txt" target="_blank">Licences of the libraries in this page</a></p>
    </>
  );
}
