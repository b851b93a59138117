import { messageOf } from "../../domain/errors/errors.ts";
import { limitedTo, countedUsage } from "../costs/estimate.ts";
import { isRefusal, type Admission, type Admit } from "../models/admission.ts";
import type { AdmissionAnswer, AdmissionRequest } from "./messages.ts";

interface Pending {
  readonly request: AdmissionRequest;
  readonly hangUp: AbortController;
  /** Null until it is admitted. */
  admission: Admission | null;
}

/** The admissions that one gateway's process has asked for and not settled, by the numbers of their calls. */
export interface PendingAdmissions {
  /** Asks whether a request may be sent. Never rejects. @returns the answer for the process; null if it has ended */
  ask(call: number, request: AdmissionRequest): Promise<AdmissionAnswer | null>;
  /** The client no longer waits for the answer. */
  hangUp(call: number): void;
  settle(call: number, usage: Parameters<Admission["settle"]>[0]): void;
  /** The process has ended: settles each at its maximum, because its provider may have answered and billed it. */
  end(error: Error): void;
}

/** @param admit as the server counts */
export function createPendingAdmissions(admit: Admit): PendingAdmissions {
  const pending = new Map<number, Pending>();
  return {
    async ask(call, request) {
      const one: Pending = { request, hangUp: new AbortController(), admission: null };
      pending.set(call, one);
      try {
        const answer = await admit({ ...request, signal: one.hangUp.signal });
        if (isRefusal(answer)) {
          pending.delete(call);
          return answer;
        }
        if (!pending.has(call)) {
          // The process has ended meanwhile: the request was not sent.
          answer.settle(null);
          return null;
        }
        one.admission = answer;
        return { outputLimit: answer.outputLimit };
      } catch (error) {
        pending.delete(call);
        const why = messageOf(error);
        return { status: 503, message: `the budget could not be checked: ${why}`, passes: true };
      }
    },
    hangUp: (call) => pending.get(call)?.hangUp.abort(new Error("it hung up")),
    settle(call, usage) {
      pending.get(call)?.admission?.settle(usage);
      pending.delete(call);
    },
    end(error) {
      for (const { request, hangUp, admission } of pending.values()) {
        const most = request.most === null ? null : limitedTo(request.most, admission?.outputLimit ?? null);
        admission?.settle(most === null ? null : countedUsage(null, most));
        hangUp.abort(error);
      }
      pending.clear();
    },
  };
}
