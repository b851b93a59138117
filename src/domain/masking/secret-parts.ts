/** Minimum characters of a value that is masked: shorter ones are too likely to be ordinary words. */
export const shortestSecret = 8;
/** From this length on, a line of words is unlikely to appear in another text by chance. */
const unlikelyLength = 16;
/** Maximum depth of values inside values, such as the private key in a service account's JSON. */
const deepest = 4;

const lineBreak = /\r\n|\r|\n|\\r\\n|\\n/u;
/** Begin of a comment in the usual formats. */
const comment = /^(?:#|\/\/|;|<!--|\/?\*)/u;
/** A key with its value, as in JSON, YAML, `.env` and ini files. */
const keyValue = /^(?:- |export )?["']?([A-Za-z_][\w.-]{0,100})["']?\s*[:=]\s*(.*)$/u;
/** A header line, such as those of PEM before its body. */
const header = /^[A-Za-z][\w-]{0,100}: /u;
/** Names of keys whose values are secret however they look. */
const secretKey = /pass|pwd|secret|token|key|credential|auth|private|signature|cookie/iu;

/**
 * The parts of a secret by each of which it is recognised, without surrounding blanks. A value of one line is
 * recognised as a whole, and by the values in it if it is JSON. Of a value with several lines, each line counts,
 * because a diff, `cat -n` or a paste shows it among other characters; but only lines that are:
 * - not armour (`-----BEGIN PRIVATE KEY-----`), brackets, or a comment
 * - at least 8 characters; under 16 characters only if they are more than words
 * - in a file of keys and values (JSON, YAML, `.env`): only the value, and only if it looks random or its key says that
 * it is secret. Otherwise `"type": "service_account"` or `apiVersion: v1` would stop and mask ordinary work
 */
export function partsOf(secret: string): string[] {
  const found = new Set<string>();
  const whole = secret.trim();
  if (whole.length >= shortestSecret) found.add(whole);
  addParts(whole, found, 0);
  return [...found];
}

/**
 * The secret's lines joined without surrounding blanks, with and without armour: what a view without line breaks shows.
 */
export function joinedPartsOf(secret: string): string[] {
  const lines = secret.split(lineBreak).map((line) => line.trim());
  if (lines.length === 1) return [];
  const inside = lines.filter((line) => !isArmour(line));
  return [...new Set([lines.join(""), inside.join("")])].filter((joined) => joined.length >= shortestSecret);
}

function addParts(text: string, found: Set<string>, depth: number): void {
  if (depth > deepest) return;
  const json = parsed(text);
  if (json !== undefined) {
    addLeaves(json, "", found, depth);
    return;
  }
  const lines = text
    .split(lineBreak)
    .map((line) => line.trim())
    .filter((line) => line !== "");
  if (lines.length < 2) return;
  const structured = lines.filter((line) => isStructure(line)).length * 2 >= lines.length;
  for (const line of lines) {
    const isPair = header.test(line) || (structured && !looksRandom(line));
    const [, key, value] = isPair ? (keyValue.exec(line) ?? []) : [];
    if (key === undefined || value === undefined) {
      if (isWorthy(line)) found.add(line);
    } else {
      addValue(key, unquoted(value), found, depth);
    }
  }
}

function addValue(key: string, value: string, found: Set<string>, depth: number): void {
  const trimmed = value.trim();
  if (trimmed.length < shortestSecret) return;
  if (lineBreak.test(trimmed) || trimmed.startsWith("{")) addParts(trimmed, found, depth + 1);
  const isAddress = /^[a-z][a-z0-9+.-]*:\/\/[^@]*$/iu.test(trimmed);
  if (looksRandom(trimmed) ? !isAddress : secretKey.test(key) && !isAddress && isWorthy(trimmed)) found.add(trimmed);
}

function addLeaves(value: unknown, key: string, found: Set<string>, depth: number): void {
  if (depth > deepest * 2) return;
  if (typeof value === "string") addValue(key, value, found, depth);
  else if (Array.isArray(value)) for (const inner of value) addLeaves(inner, key, found, depth + 1);
  else if (value !== null && typeof value === "object") {
    for (const [name, inner] of Object.entries(value)) addLeaves(inner, name, found, depth + 1);
  }
}

/** Undefined if the text is not a JSON object or array. */
function parsed(text: string): unknown {
  if (!/^[[{]/u.test(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function unquoted(value: string): string {
  const bare = value.replace(/[,;]$/u, "").trim();
  const [first = ""] = bare;
  return /["']/u.test(first) && bare.endsWith(first) && bare.length > 1 ? bare.slice(1, -1) : bare;
}

/** Whether a line looks like one of a file of keys and values. */
function isStructure(line: string): boolean {
  return (keyValue.test(line) && !looksRandom(line)) || comment.test(line) || isPunctuation(line);
}

function isArmour(line: string): boolean {
  return line.startsWith("--") && line.endsWith("--");
}

function isPunctuation(line: string): boolean {
  return /^[{}[\]()<>,;:=\-_*#"'/\\.\s]*$/u.test(line);
}

function isWorthy(line: string): boolean {
  if (line.length < shortestSecret || isArmour(line) || isPunctuation(line)) return false;
  if (looksRandom(line)) return true;
  if (comment.test(line)) return false;
  return line.length >= unlikelyLength || !/^[\W_]*(?:[A-Za-z]?[a-z]*|[A-Z]*)(?:[\W_]+[A-Za-z]?[a-z]*)*$/u.test(line);
}

/**
 * Whether a part of the text changes so often between small letters, capitals and digits that it is not a word or a
 * name.
 */
function looksRandom(text: string): boolean {
  for (const [run] of text.matchAll(/[A-Za-z0-9+/=_-]{8,}/gu)) {
    const digits = run.match(/\d/gu)?.length ?? 0;
    const changes = run.match(/[a-z](?=[A-Z\d])|[A-Z](?=\d)|\d(?=[A-Za-z])/gu)?.length ?? 0;
    if (digits > 0 && changes >= Math.max(3, run.length / 12)) return true;
    if (run.length >= 20 && changes >= 4 && /[A-Z]{2}|[a-z][A-Z][a-z]?[A-Z]/u.test(run)) return true;
  }
  return false;
}
