import { styleText } from "node:util";
import { pino, type Logger, type SerializedError } from "pino";

export type { Logger } from "pino";

/** Parts of a request that may contain a credential; they are never logged. */
const redacted = ["req.headers.authorization", "req.headers.cookie", "headers.authorization", "headers.cookie"];

/**
 * Makes the logger of a process. It writes to stderr, because stdout is for the program's output.
 * @param level a level of pino
 * @param mask applied to each whole line, to remove known secrets that an error may quote
 * @param format JSON lines, or text for people; `auto` is text if stderr is a terminal
 */
export function createLogger(
  level: string,
  mask: (line: string) => string = (line) => line,
  format: "auto" | "json" | "text" = "auto",
): Logger {
  const isText = format === "text" || (format === "auto" && process.stderr.isTTY);
  return pino(
    {
      level,
      redact: { paths: redacted, censor: "[redacted]" },
      serializers: { err: errorFields },
      hooks: { streamWrite: isText ? (line) => textOf(mask(line)) : mask },
    },
    pino.destination({ fd: 2, sync: true }),
  );
}

const levelNames: Readonly<Record<number, string>> = {
  10: "TRACE",
  20: "DEBUG",
  30: "INFO",
  40: "WARN",
  50: "ERROR",
  60: "FATAL",
};

/** The fields of a line by pino and `errorFields`, with the caller's. */
interface LogLine extends Readonly<Record<string, unknown>> {
  readonly level: number;
  readonly time: number;
  readonly msg?: string;
  readonly err?: { readonly message?: string; readonly stack?: string };
}

/** A line for people: time of day, level, message, the other fields, and below them an error's stack. */
function textOf(line: string): string {
  const { level, time, pid: _pid, hostname: _hostname, msg = "", err = {}, ...fields } = JSON.parse(line) as LogLine;
  const color = level >= 50 ? "red" : level >= 40 ? "yellow" : "green";
  const name = styleText(color, (levelNames[level] ?? String(level)).padEnd(5), { stream: process.stderr });
  const { stack, message = "", type: _type, ...details } = err as Readonly<Record<string, string>>;
  const known = Object.entries({ ...fields, ...details }).map(
    ([key, value]) => ` ${key}=${typeof value === "string" ? value : JSON.stringify(value)}`,
  );
  const below = (stack ?? message).split("\n").filter((text) => text !== "");
  const first = `${new Date(time).toTimeString().slice(0, 8)} ${name} ${visible([msg, ...known].join(""))}`;
  return [first, ...below.map((text) => `    ${visible(text)}`), ""].join("\n");
}

/** Text without characters that move the cursor, colour, turn or hide what a terminal shows: an agent may have chosen it. */
function visible(text: string): string {
  const escaped = (character: string): string => `\\u{${character.codePointAt(0)?.toString(16) ?? ""}}`;
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, escaped);
}

/** Makes a logger that also masks further secrets in errors. */
export function maskErrors(logger: Logger, mask: (text: string) => string): Logger {
  const err = (error: Error): unknown => JSON.parse(mask(JSON.stringify(errorFields(error))));
  return logger.child({}, { serializers: { err } });
}

/**
 * The fields of an error that are strings, numbers or booleans: libraries attach whole connections and requests to
 * their errors, with all credentials.
 */
function errorFields(error: Error): unknown {
  if (!(error instanceof Error)) return error;
  return plainFields(pino.stdSerializers.err(error));
}

function plainFields(error: SerializedError): unknown {
  const { type, message, stack, aggregateErrors, raw } = error;
  // Only own fields: a DOMException inherits a constant for each error code.
  const own = Object.entries(raw).filter(([, value]) => ["string", "number", "boolean"].includes(typeof value));
  return {
    ...Object.fromEntries(own),
    type,
    message,
    stack,
    ...(aggregateErrors && { aggregateErrors: aggregateErrors.map(plainFields) }),
  };
}
