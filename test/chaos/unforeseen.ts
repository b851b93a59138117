import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { isConflictOfTransactions, isConnectionError } from "../../src/database/connection-errors.ts";
import { isDiskFull } from "../../src/worker/disk/disk-full.ts";

/** What is looked at of a line of a node's log. */
interface LogLine {
  readonly level?: number;
  readonly msg?: string;
  readonly err?: LoggedError;
}

interface LoggedError {
  readonly type: string;
  readonly message: string;
  readonly aggregateErrors?: readonly LoggedError[];
}

/** Attempts that failed as `internal`, or of no failure at all: no error of theirs is foreseen. */
const ofAttempts = /^an attempt (?:failed|ended) with an unexpected error$/u;
/** Errors that Offstage raises on purpose, and those of calls that were given up. */
const foreseen: ReadonlySet<string> = new Set([
  "SessionError",
  "ForgeUnavailable",
  "UnavailableError",
  "TooManyRequestsError",
  "LeaseLostError",
  "AbortError",
  "TimeoutError",
  "DOMException",
]);
/** What a host that is away makes of `fetch`, and a database of a query that is being written; a log's message has those of the causes. */
const ofConnections =
  /^(?:fetch failed|terminated|(?:Connection terminated unexpectedly: )?write EPIPE|write ECONNRESET)$/u;
/** A worker says so once it has looked at its disk: a program that fails for that does not always tell why. */
const ofFullDisks = "the disk of this worker is full";
const failed = 50;

/**
 * Unexpected errors in the logs of a fleet: of attempts, of requests, which answered 500, and of background tasks. Each
 * is a bug.
 */
export async function unforeseen(folder: string, nodes: readonly { readonly name: string }[]): Promise<string[]> {
  const lines = nodes.map(async ({ name }) => {
    const log = await readFile(join(folder, `${name}.log`), "utf8").catch(() => "");
    return log.split("\n").flatMap((line) => (isUnforeseen(line) ? [`${name}: ${line}`] : []));
  });
  return (await Promise.all(lines)).flat();
}

function isUnforeseen(line: string): boolean {
  // How a process ended is no line of the logger's, and a killed one may not have finished its last.
  if (!line.startsWith("{") || !line.endsWith("}")) return false;
  const { level = 0, msg = "", err } = JSON.parse(line) as LogLine;
  // A warning without this says what was done instead.
  if (level < failed && !msg.endsWith("will retry")) return false;
  if (err === undefined || msg === ofFullDisks) return false;
  return ofAttempts.test(msg) || !isPassing(err);
}

/** Whether an error is one of those that the chaos causes. */
function isPassing(err: LoggedError): boolean {
  if (foreseen.has(err.type) || ofConnections.test(err.message)) return true;
  if (err.aggregateErrors !== undefined && err.aggregateErrors.length > 0) return err.aggregateErrors.every(isPassing);
  const error = Object.assign(new Error(err.message), err);
  return isConnectionError(error) || isConflictOfTransactions(error) || isDiskFull(error);
}
