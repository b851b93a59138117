import { pino, type Logger } from "pino";

export type { Logger } from "pino";

/** Parts of a request that may hold a credential; they never reach a log. */
const redacted = ["req.headers.authorization", "req.headers.cookie", "headers.authorization", "headers.cookie"];

/** One logger for each process, handed in; JSON lines on stderr, so that stdout stays the program's answer. */
export function createLogger(level: string): Logger {
  return pino({ level, redact: { paths: redacted, censor: "[redacted]" } }, pino.destination({ fd: 2, sync: true }));
}
