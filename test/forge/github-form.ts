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

/** A page of the jobs of a run of a workflow: those that passed, if it has some, and those that failed; null if there is no such run. */
export function answerJobs(state: ForgeState, { place, query }: ApiRequest, run: string): Answer | null {
  const jobs = jobsOf(state, place, run);
  if (jobs === null) return null;
  const of = { run_id: Number(run), status: "completed" };
  const { passedJobs = 0 } = state.facts.get(`${place.owner}/${place.name}`) ?? {};
  const all = [
    ...Array.from({ length: passedJobs }, (_, index) => ({
      id: 10_000 + index,
      name: `passed ${index}`,
      ...of,
      conclusion: "success",
    })),
    ...jobs.map((each) => ({ ...each, ...of, conclusion: "failure" })),
  ];
  const size = Math.min(Number(query.get("per_page") ?? query.get("limit") ?? 30), 100);
  const page = Number(query.get("page") ?? 1);
  return { status: 200, body: { total_count: all.length, jobs: all.slice((page - 1) * size, page * size) } };
}
