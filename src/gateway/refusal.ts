/** Why a request to a model is not forwarded, for its harness and the session. */
export interface ModelRefusal {
  readonly status: number;
  /** One sentence: the problem and the remedy. */
  readonly message: string;
  /** Whether it passes by itself, as if the database is away for a moment. Omitted: it does not. */
  readonly passes?: boolean;
}

/** The request is not understood or not allowed, so that it is not forwarded. */
export class RequestRefusedError extends Error implements ModelRefusal {
  override readonly name = "RequestRefusedError";
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Refuses what the operator has not allowed by name. @param what begins the message @throws RequestRefusedError */
export function refuseUnlessAllowed(permits: readonly string[], permit: string, what: string): void {
  if (permits.some((allowed) => matchesPattern(allowed, permit))) return;
  throw new RequestRefusedError(403, `${what}; an operator can allow it: OFFSTAGE_MODEL_ALLOW=${permit}`);
}

/** Whether a name equals the pattern or, if the pattern ends with an asterisk, begins with what precedes it. */
export function matchesPattern(pattern: string, name: string): boolean {
  return pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
}
