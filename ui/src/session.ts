// The token, and the place in the page that the address names.
//
// The token comes in the fragment, which no server and no Referer sees. It leaves the address at
// once, and stays in this tab's sessionStorage. No cookie: cookies are the same for all ports.
import { signal } from "@preact/signals";

const key = "holdfast-token";

export function takeToken(): string {
  const given = /^#token=([0-9a-f]{64})$/.exec(location.hash)?.[1];
  if (given) {
    sessionStorage.setItem(key, given);
    history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem(key) ?? "";
}

export interface Place {
  screen: string;
  query: URLSearchParams;
}

// "#/jobs?filter=phase:Running".
export function readPlace(hash: string): Place {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  return { screen: path || "needs", query: new URLSearchParams(query) };
}

export function addressOf(screen: string, query: Record<string, string> = {}): string {
  const filled = Object.entries(query).filter(([, value]) => value !== "");
  const text = new URLSearchParams(filled).toString();
  return `#/${screen}${text ? `?${text}` : ""}`;
}

export const place = signal<Place>({ screen: "needs", query: new URLSearchParams() });

// The filter takes what is typed as soon as it is there.
export const focusFilter = signal(false);

// A browser keeps few connections for each host, so a tab that nobody sees has none.
export const visible = signal(true);

export function startPlaces(): void {
  const read = () => {
    clearTimeout(late);
    // The address of another run was opened in this tab.
    if (location.hash.startsWith("#token=")) {
      takeToken();
      location.reload();
      return;
    }
    place.value = readPlace(location.hash);
  };
  visible.value = document.visibilityState !== "hidden";
  addEventListener("visibilitychange", () => (visible.value = document.visibilityState !== "hidden"));
  addEventListener("hashchange", read);
  read();
}

// Changes the address without a step that Back would have to undo.
export function replacePlace(screen: string, query: Record<string, string>): void {
  const address = addressOf(screen, query);
  place.value = readPlace(address);
  writeAddress(address);
}

// A browser does not write the address of one who types fast: Safari throws, Chromium leaves it. Then
// it is written later, unless the place is another by then.
let late: ReturnType<typeof setTimeout> | undefined;

function writeAddress(address: string): void {
  clearTimeout(late);
  try {
    history.replaceState(null, "", address);
  } catch {
    // later
  }
  if (location.hash !== address) late = setTimeout(() => writeAddress(address), 1000);
}
