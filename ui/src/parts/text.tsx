// Sentences and the moments in them. All of it is text: nothing here sets markup.
import { formText, momentText, now, spanText } from "../clock";
import type { Sentence } from "../model";

export function Words({ of }: { of: Sentence }) {
  if (!of.parts) return <>{of.text ?? ""}</>;
  return (
    <>
      {of.parts.map((part) =>
        typeof part === "string" ? part : (
          <time dateTime={part.time}>{formText(Date.parse(part.time), part.as, now.value)}</time>
        ),
      )}
    </>
  );
}

// `words` in backticks, as code.
export function Coded({ text }: { text: string }) {
  return <>{text.split("`").map((part, index) => (index % 2 === 1 ? <code>{part}</code> : part))}</>;
}

export function Moment({ at }: { at: string | undefined }) {
  if (!at) return null;
  return <time dateTime={at}>{momentText(Date.parse(at), now.value)}</time>;
}

// How long ago; the exact time as a title.
export function Age({ of }: { of: string | undefined }) {
  if (!of) return <>-</>;
  return (
    <time dateTime={of} title={of}>
      {spanText(now.value - Date.parse(of))}
    </time>
  );
}

// A command, with a button that copies it.
export function Command({ text }: { text: string }) {
  return (
    <div class="command">
      <code>{text}</code>
      <button type="button" onClick={() => void navigator.clipboard.writeText(text)}>
        Copy<span class="hidden"> the command {text}</span>
      </button>
    </div>
  );
}

export function Commands({ texts }: { texts: string[] }) {
  return <>{texts.map((text) => <Command key={text} text={text} />)}</>;
}

// The phase in words with a sign, so that colour alone says nothing.
const signs: Record<string, string> = {
  Succeeded: "✓", Failed: "✗", Cancelled: "–", Cancelling: "–", Running: "▶", Backoff: "↻",
  Pending: "…", Suspended: "‖",
};
export function Phase({ of, stalled }: { of: string | undefined; stalled?: boolean | undefined }) {
  const phase = of || "new";
  return (
    <span class={`phase ${phase.toLowerCase()}`}>
      <span aria-hidden="true">{stalled ? "!" : (signs[phase] ?? "…")} </span>
      {phase}
      {stalled ? <span class="needs">, needs a person</span> : null}
    </span>
  );
}
