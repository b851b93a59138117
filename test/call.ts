import { adminKey } from "./world.ts";

/** One call of the API by its path, for what the typed client has no word for. @throws Error with the answer's sentence */
// oxlint-disable-next-line typescript/no-explicit-any -- what a test expects of a body is the test's to say
export async function callApi(baseUrl: string, path: string, body?: unknown): Promise<any> {
  const response = await fetch(`${baseUrl}${path}`, {
    headers: { Authorization: `Bearer ${adminKey}`, "Content-Type": "application/json" },
    ...(body !== undefined && { method: "POST", body: JSON.stringify(body) }),
  });
  const answer: unknown = await response.json();
  if (!response.ok) throw new Error(`${path} answered ${response.status}: ${JSON.stringify(answer)}`);
  return answer;
}
