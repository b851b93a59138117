import { pino, type Logger, type SerializedError } from "pino";

export type { Logger } from "pino";

/** Parts of a request that may contain a credential; they are never logged. */
const redacted = ["req.headers.authorization", "req.headers.cookie", "headers.authorization", "headers.cookie"];

/**
 * Makes the logger of a process. It writes JSON lines to stderr, because stdout is for the program's output.
 * @param level a level of pino
 * @param mask applied to each whole line, to remove known secrets that an error may quote
 */
export function createLogger(level: string, mask: (line: string) => string = (line) => line): Logger {
  return pino(
    {
      level,
      redact: { paths: redacted, censor: "[redacted]" },
      serializers: { err: errorFields },
      hooks: { streamWrite: mask },
    },
    pino.destination({ fd: 2, sync: true }),
  );
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
