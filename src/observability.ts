import { pino, type Logger, type SerializedError } from "pino";

export type { Logger } from "pino";

/** Parts of a request that may hold a credential; they never reach a log. */
const redacted = ["req.headers.authorization", "req.headers.cookie", "headers.authorization", "headers.cookie"];

/**
 * One logger for each process, handed in; JSON lines on stderr, so that stdout stays the program's answer.
 * @param mask applied to each line whole: whatever an error quotes, no known secret is in it
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

/** The same logger for what knows more secrets: errors are masked of them. */
export function maskErrors(logger: Logger, mask: (text: string) => string): Logger {
  const err = (error: Error): unknown => JSON.parse(mask(JSON.stringify(errorFields(error))));
  return logger.child({}, { serializers: { err } });
}

/** Texts and numbers alone: libraries hang whole connections and requests onto their errors, with all that these hold. */
function errorFields(error: Error): unknown {
  if (!(error instanceof Error)) return error;
  return plainFields(pino.stdSerializers.err(error));
}

function plainFields(error: SerializedError): unknown {
  const { type, message, stack, aggregateErrors, raw } = error;
  // Its own: a DOMException inherits a number for each code that there is.
  const own = Object.entries(raw).filter(([, value]) => ["string", "number", "boolean"].includes(typeof value));
  return {
    ...Object.fromEntries(own),
    type,
    message,
    stack,
    ...(aggregateErrors && { aggregateErrors: aggregateErrors.map(plainFields) }),
  };
}
