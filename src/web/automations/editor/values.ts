import { celTokens } from "./cel-tokens.ts";
import { liquidTokens } from "./liquid-tokens.ts";

/** A value that a template or a condition can name. */
export interface OfferedValue {
  /** As it is written: `event.issue.labels[0]`. */
  readonly path: string;
  /** The value itself, as JSON, cut. */
  readonly value: string;
  /** Whether there are values in it. */
  readonly hasMore: boolean;
}

/** The begun name of a value, and its position in the text. */
export interface BegunName {
  readonly from: number;
  readonly words: string;
}

/** A language whose texts name values. */
export interface Naming {
  /** Names that are written behind a point; others are in brackets. */
  readonly plain: RegExp;
  /** The name before the cursor; null: none has been begun. */
  begunAt(text: string, cursor: number): BegunName | null;
}

/** Most values of one event: deliveries of forges have thousands. */
const mostValues = 3_000;
/** Most that are offered at once. */
const mostShown = 50;
/** Characters of a value that are shown. */
const longestShown = 80;

/** How Liquid names values. They are named in tags alone. */
export const liquidNaming: Naming = {
  plain: /^[A-Za-z_][\w-]*$/u,
  begunAt(text, cursor) {
    const tokens = liquidTokens(text.slice(0, cursor));
    const kind = tokens.at(-1)?.kind;
    const isInTag = /\{[{%]-?$/u.test(tokens.findLast((token) => token.kind === "mark")?.text ?? "");
    return isInTag && kind !== "literal" && kind !== "comment" ? begunName(text, cursor, liquidName) : null;
  },
};

/** How CEL names values. */
export const celNaming: Naming = {
  plain: /^[A-Za-z_]\w*$/u,
  begunAt(text, cursor) {
    const kind = celTokens(text.slice(0, cursor)).at(-1)?.kind;
    return kind === "literal" || kind === "comment" ? null : begunName(text, cursor, celName);
  },
};

const liquidName = /(?<![\w.-])event(?:\.[\w-]*|\[\d+\]|\["[^"\n]*"\])+$/u;
const celName = /(?<![\w.])(?:event|trigger|repository)(?:\.\w*|\[\d+\]|\["[^"\n]*"\])+$/u;

function begunName(text: string, cursor: number, name: RegExp): BegunName | null {
  const words = name.exec(text.slice(Math.max(0, cursor - 1_000), cursor))?.[0];
  return words === undefined ? null : { from: cursor - words.length, words };
}

/**
 * Every value that can be named, those that are named shortly first.
 * @param roots by the names that they have in the language
 */
export function valuesOf(roots: Readonly<Record<string, unknown>>, { plain }: Naming): OfferedValue[] {
  const found: OfferedValue[] = [];
  let level: (readonly [path: string, value: unknown])[] = Object.entries(roots);
  while (level.length > 0 && found.length < mostValues) {
    const inner = level.flatMap(([path, value]) => innerOf(path, value, plain)).slice(0, mostValues - found.length);
    found.push(...inner.map(([path, value]) => offered(path, value, plain)));
    level = inner;
  }
  return found;
}

function innerOf(path: string, value: unknown, plain: RegExp): (readonly [path: string, value: unknown])[] {
  // One item of a list represents all.
  if (Array.isArray(value)) return value.length === 0 ? [] : [[`${path}[0]`, value[0]]];
  if (typeof value !== "object" || value === null) return [];
  // Neither language has a way to write every name.
  const names = Object.entries(value).filter(([name]) => !/["\\\p{Cc}]/u.test(name));
  return names.map(([name, each]) => [plain.test(name) ? `${path}.${name}` : `${path}["${name}"]`, each]);
}

function offered(path: string, value: unknown, plain: RegExp): OfferedValue {
  const text = typeof value === "string" ? JSON.stringify(value.slice(0, longestShown)) : JSON.stringify(value);
  return { path, value: cut(text), hasMore: innerOf(path, value, plain).length > 0 };
}

function cut(text: string): string {
  return text.length <= longestShown ? text : `${text.slice(0, longestShown).toWellFormed()}…`;
}

/** The values that fit what was written of a name: those that begin so, then those that have it further on. */
export function valuesFor(words: string, values: readonly OfferedValue[]): OfferedValue[] {
  const written = words.toLowerCase();
  const end = written.slice(written.search(/[.[]/u));
  const begin = new Set(values.filter(({ path }) => path.toLowerCase().startsWith(written)));
  const has = values.filter((value) => !begin.has(value) && value.path.toLowerCase().includes(end));
  const all = end === "." ? [...begin] : [...begin, ...has];
  // A complete name need not be offered.
  return all.length === 1 && all[0]?.path === words ? [] : all.slice(0, mostShown);
}
