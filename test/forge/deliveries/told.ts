import type { CheckRun, KeptComment, KeptPullRequest, KeptStatus, Lines, Place } from "../state.ts";

/** A happening on a forge, whatever its dialect. */
export type Told = { readonly place: Place; readonly by: string } & (
  | {
      readonly type: "comment";
      readonly comment: KeptComment;
      /** Null: it is on an issue. */
      readonly pull: ToldPullRequest | null;
      readonly lines: Lines | null;
      readonly reviewId: number | null;
    }
  | { readonly type: "review"; readonly id: number; readonly body: string; readonly pull: ToldPullRequest }
  | {
      readonly type: "checks";
      readonly run: CheckRun;
      readonly pull: ToldPullRequest | null;
      /** The merge with the target that was checked in truth, on forges that do so; null: the commit itself was. */
      readonly mergedSha: string | null;
    }
  | { readonly type: "status"; readonly status: KeptStatus }
  | { readonly type: "push"; readonly branch: string; readonly before: string | null; readonly after: string }
  | { readonly type: "edited"; readonly before: string; readonly pull: ToldPullRequest }
  | { readonly type: "ended"; readonly pull: ToldPullRequest }
);

/** What a forge delivers of it. */
export interface Delivered {
  /** The event's name, where the forge has it. */
  readonly event: string;
  readonly payload: object;
}

/** A pull request with the commit that it has now. */
export type ToldPullRequest = KeptPullRequest & { readonly headSha: string };

/** The number that the address of a run of CI has on Gitea, and which is another run's id. */
export const numberOf = ({ id }: Pick<CheckRun, "id">): number => id + 2;
