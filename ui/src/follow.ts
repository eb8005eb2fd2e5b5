// A screen's data, for a component: followed while it is shown.
import { useEffect, useState } from "preact/hooks";
import { follow } from "./api";
import { visible } from "./session";

export function useScreen<Screen>(query: Record<string, string>): {
  screen: Screen | undefined;
  refused: string;
} {
  const [screen, show] = useState<Screen | undefined>(undefined);
  const [refused, refuse] = useState("");
  const key = new URLSearchParams(query).toString();
  const seen = visible.value;
  useEffect(() => {
    if (!seen) return undefined;
    const end = new AbortController();
    void follow<Screen>(query, end.signal, show, refuse);
    return () => end.abort();
  }, [key, seen]);
  return { screen, refused };
}
