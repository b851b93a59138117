import type { Answer, ApiRequest } from "./api-request.ts";
import { addReaction, jobsOf, reactionsTo } from "./feedback.ts";
import type { ForgeState } from "./state.ts";

/** The reactions to something, or one more. @param shape what each has beside its content */
export function answerReactions(state: ForgeState, request: ApiRequest, to: string, shape: object): Answer {
  if (request.method === "GET")
    return { status: 200, body: reactionsTo(state, request, to).map((content) => ({ ...shape, content })) };
  const content = request.body["content"] ?? "";
  const wasThere = addReaction(state, request, to, content);
  return { status: wasThere ? 200 : 201, body: { ...shape, content } };
}

/** The jobs of a run of a workflow, all of which failed; null if there is no such run. */
export function answerJobs(state: ForgeState, { place }: ApiRequest, run: string): Answer | null {
  const jobs = jobsOf(state, place, run);
  if (jobs === null) return null;
  const shown = jobs.map((each) => ({ ...each, run_id: Number(run), status: "completed", conclusion: "failure" }));
  return { status: 200, body: { total_count: shown.length, jobs: shown } };
}
