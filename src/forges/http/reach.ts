import { AsyncLocalStorage } from "node:async_hooks";

/** The `code` of the cause of a failure of `Reach.fetch` whose answer was too large. */
export const answerTooLarge = "ERR_ANSWER_TOO_LARGE";

/** How a forge that an organization named is reached. */
export interface Reach {
  /** In the place of `fetch`; it must follow no redirect. @throws SessionError if the address may not be contacted */
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>;
  /** Called if the forge refuses the credential, or a right of it. */
  readonly refused: () => void;
}

/**
 * The reach of the call under way. It is not a parameter, so that no adapter can forget to pass it on: whatever an adapter of an
 * organization's forge asks by `callForge` is guarded.
 */
const reaches = new AsyncLocalStorage<Reach>();

/** The reach of the call under way; undefined: the forge is the operator's, and reached as everything else. */
export function currentReach(): Reach | undefined {
  return reaches.getStore();
}

/** Sends every request to a forge that the work makes through this reach. */
export function withReach<Result>(reach: Reach, work: () => Result): Result {
  return reaches.run(reach, work);
}
