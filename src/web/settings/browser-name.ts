/** The names of browsers in their user agents; a browser that also names others comes before these. */
const browsers = [
  [/Edg(?:A|iOS)?\//u, "Edge"],
  [/OPR\//u, "Opera"],
  [/Firefox\/|FxiOS\//u, "Firefox"],
  [/Chrome\/|CriOS\//u, "Chrome"],
  [/Safari\//u, "Safari"],
] as const;
const systems = [
  [/iPhone/u, "iPhone"],
  [/iPad/u, "iPad"],
  [/Android/u, "Android"],
  [/Windows/u, "Windows"],
  [/Mac OS X/u, "macOS"],
  [/CrOS/u, "ChromeOS"],
  [/Linux/u, "Linux"],
] as const;

/** A browser and its system, such as `Firefox · Windows`, by what it sends as `User-Agent`; null: it is none that is known. */
export function browserName(userAgent: string | null): string | null {
  const nameIn = (names: typeof browsers | typeof systems): string | undefined =>
    names.find(([pattern]) => pattern.test(userAgent ?? ""))?.[1];
  const found = [nameIn(browsers), nameIn(systems)].filter((name) => name !== undefined);
  return found.length === 0 ? null : found.join(" · ");
}
