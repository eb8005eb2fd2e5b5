import { describe, expect, it } from "vitest";
import { clockText, formText, momentText, spanText } from "../src/clock";

const noon = Date.parse("2026-07-01T12:00:00Z");
const s = 1000;

describe("times", () => {
  it("have at most two units, as the plugin writes them", () => {
    expect(spanText(0)).toBe("0s");
    expect(spanText(-5 * s)).toBe("0s");
    expect(spanText(59.9 * s)).toBe("59s");
    expect(spanText(90 * s)).toBe("1m30s");
    expect(spanText(780 * s)).toBe("13m");
    expect(spanText(3601 * s)).toBe("1h");
    expect(spanText(90061 * s)).toBe("1d1h");
  });
  it("name another day", () => {
    expect(clockText(noon, noon)).toBe("12:00:00");
    expect(clockText(noon - 86400 * s, noon)).toBe("Jun 30 12:00");
    expect(clockText(noon - 365 * 86400 * s, noon)).toBe("Jul 01 2025 12:00");
  });
  it("round what comes up, and what was down", () => {
    expect(momentText(noon + 27600, noon)).toBe("in 28s (12:00:27 UTC)");
    expect(momentText(noon - 27600, noon)).toBe("27s ago (11:59:32 UTC)");
    expect(momentText(noon - 500, noon)).toBe("just now (11:59:59 UTC)");
  });
  it("say what is due", () => {
    expect(formText(noon - 2 * s, "due", noon)).toBe("due 2s ago (11:59:58 UTC), being done now");
    expect(formText(noon - 9 * s, "due", noon)).toBe("due 9s ago (11:59:51 UTC)");
    expect(formText(noon - 9 * s, "ago", noon)).toBe("9s ago");
  });
});
