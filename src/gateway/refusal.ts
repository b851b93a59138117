/** Why a request of a model is not forwarded, as its harness and the session are told. */
export interface ModelRefusal {
  readonly status: number;
  /** One sentence: what is wrong and what helps. */
  readonly message: string;
}

/** The gateway forwards nothing that it does not understand or that is not allowed. */
export class RequestRefusedError extends Error implements ModelRefusal {
  override readonly name = "RequestRefusedError";
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Refuses what an operator can allow by its name. @param what begins the sentence */
export function refuseUnlessAllowed(permits: readonly string[], permit: string, what: string): void {
  if (permits.some((allowed) => fits(allowed, permit))) return;
  throw new RequestRefusedError(403, `${what}; an operator can allow it: OFFSTAGE_MODEL_ALLOW=${permit}`);
}

/** Whether a name is the pattern, or begins with what stands before the asterisk at the pattern's end. */
export function fits(pattern: string, name: string): boolean {
  return pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
}
