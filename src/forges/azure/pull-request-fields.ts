import type { RepositoryCall } from "../forge.ts";
import type { PullRequestAddition } from "../../domain/repositories/pull-request-settings.ts";
import type { RepositoryAddress } from "../../domain/repositories/repository.ts";
import { addEach, hasNone, wordsIfRefused } from "../feedback/feedback.ts";
import { refusedBy } from "../http/refusal.ts";
import { identitiesUrl, type AzureApi, type AzureSettings } from "./api.ts";

const guid = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/iu;

interface Identity {
  readonly id?: string;
  readonly isActive?: boolean;
}

/**
 * Labels, which are made if they do not exist, and reviewers by their accounts' or groups' names. It has no assignees.
 */
export async function addOnAzure(
  api: AzureApi,
  settings: AzureSettings,
  call: RepositoryCall,
  { address, number }: { readonly address: RepositoryAddress; readonly number: number },
  addition: PullRequestAddition,
  signal: AbortSignal,
): Promise<void> {
  const { host } = api;
  const { field } = addition;
  if (field === "assignees") throw hasNone(host, field);
  const pull = `/pullRequests/${number}`;
  if (field === "labels") {
    await addEach(host, addition, async (name) => {
      const answer = await call(address, "POST", `${pull}/labels`, signal, { body: { name } });
      return wordsIfRefused(host, answer, [200, 201], field);
    });
    return;
  }
  const read = await call(address, "GET", `/pullrequests/${number}`, signal);
  if (read.status !== 200) throw refusedBy(host, read, field);
  const { reviewers } = read.body as { readonly reviewers?: readonly { readonly id?: string }[] | null };
  // A reviewer who is asked again loses the vote.
  const known = new Set((reviewers ?? []).map(({ id }) => id?.toLowerCase()));
  await addEach(host, addition, async (name) => {
    const id = guid.test(name) ? name : await idOf(api, settings, address, name, signal);
    if (id === null) return "there is no account, or more than one, with this name: give the e-mail address or the id";
    if (known.has(id.toLowerCase())) return null;
    const path = `${pull}/reviewers/${encodeURIComponent(id)}`;
    return wordsIfRefused(host, await call(address, "PUT", path, signal, { body: { id, vote: 0 } }), [200, 201], field);
  });
}

/** The id of the one account or group with a name or an e-mail address; null if there is none, or more than one. */
async function idOf(
  api: AzureApi,
  settings: AzureSettings,
  address: RepositoryAddress,
  name: string,
  signal: AbortSignal,
): Promise<string | null> {
  const query = new URLSearchParams({ searchFilter: "General", filterValue: name }).toString();
  const url = identitiesUrl(settings, api.repositoryOf(address).collection, query);
  const answer = await api.call(url, "GET", signal);
  if (answer.status !== 200) throw refusedBy(api.host, answer, "search for a reviewer");
  const found = (answer.body as readonly Identity[]).filter(({ isActive }) => isActive !== false);
  return found.length === 1 ? (found[0]?.id ?? null) : null;
}
