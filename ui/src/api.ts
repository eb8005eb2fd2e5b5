// Calls of the plugin's server. Events are read by fetch: an EventSource could not send the token.
import { signal } from "@preact/signals";
import { hearTime } from "./clock";
import type { Envelope } from "./model";

let token = "";
export function useToken(given: string): void {
  token = given;
}

// What the page says about its connection: "" while all is current.
export const trouble = signal("");
// The plugin has read all jobs; until then the page has some of them.
export const complete = signal(true);
// As of when the data are, where they are not current.
export const heard = signal("");
// What the page shows: a cluster and a namespace, or all.
export const scope = signal("");
// The plugin says something each 10 s.
const silentAfter = 25_000;

function headers(): Record<string, string> {
  return { Authorization: `Bearer ${token}` };
}

const lost = "the program that serves this page has ended: start kubectl holdfast ui again";

async function failure(reply: Response): Promise<string> {
  if (reply.status === 401) {
    return "this tab's token is not that of the running program: open the address that it printed";
  }
  const text = await reply.text();
  try {
    return (JSON.parse(text) as { error?: string }).error ?? text;
  } catch {
    return text;
  }
}

export async function get<T>(path: string, query: Record<string, string>): Promise<T> {
  const reply = await fetch(`${path}?${new URLSearchParams(query)}`, { headers: headers() });
  if (!reply.ok) throw new Error(await failure(reply));
  return reply.headers.get("Content-Type") === "application/json"
    ? ((await reply.json()) as T)
    : ((await reply.text()) as T);
}

export async function post<T>(path: string, body: unknown): Promise<T> {
  const reply = await fetch(path, { method: "POST", headers: headers(), body: JSON.stringify(body) });
  if (!reply.ok) throw new Error(await failure(reply));
  return (await reply.json()) as T;
}

// The data of each whole event in `text`, and what is left.
export function splitEvents(text: string): { data: string[]; rest: string } {
  const blocks = text.split("\n\n");
  const rest = blocks.pop() ?? "";
  const data = blocks.filter((block) => block.startsWith("data: ")).map((block) => block.slice(6));
  return { data, rest };
}

// Follows a screen until the signal aborts. A stream that breaks is opened again.
export async function follow<Screen>(
  query: Record<string, string>,
  signal: AbortSignal,
  show: (screen: Screen) => void,
  refuse: (why: string) => void,
): Promise<void> {
  let pause = 1000;
  const longest = 30_000;
  while (!signal.aborted) {
    try {
      const reply = await fetch(`/api/events?${new URLSearchParams(query)}`, {
        headers: headers(),
        signal,
      });
      if (!reply.ok) {
        const why = await failure(reply);
        if (reply.status === 401) trouble.value = why;
        else refuse(why);
        return;
      }
      refuse("");
      pause = 1000;
      await read(reply, show);
    } catch {
      if (signal.aborted) return;
    }
    if (signal.aborted) return;
    trouble.value = lost;
    await new Promise((done) => setTimeout(done, pause));
    pause = Math.min(longest, pause * 2);
  }
}

async function read<Screen>(reply: Response, show: (screen: Screen) => void): Promise<void> {
  const reader = reply.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (!reader) return;
  let text = "";
  let silence = 0;
  for (;;) {
    silence = window.setTimeout(() => (trouble.value = "the API server does not answer"), silentAfter);
    const { done, value } = await reader.read().finally(() => clearTimeout(silence));
    if (done) return;
    const split = splitEvents(text + value);
    text = split.rest;
    for (const data of split.data) {
      const envelope = JSON.parse(data) as Envelope<Screen>;
      hearTime(envelope.now);
      trouble.value = envelope.trouble;
      complete.value = envelope.synced;
      scope.value = envelope.scope;
      heard.value = envelope.asOf ?? (envelope.trouble ? heard.value : envelope.now);
      if (envelope.screen !== undefined) show(envelope.screen);
    }
  }
}
