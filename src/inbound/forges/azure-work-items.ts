import type { ForgeAccount, ForgeEvent } from "../../domain/automations/forge-event.ts";
import type { InboundEvent } from "../../domain/automations/inbound-event.ts";
import { account, type Identity } from "./azure-form.ts";
import { longest, most } from "./event.ts";
import type { ForgeHappening } from "./event.ts";
import { textOfHtml } from "./html-text.ts";
import { identifier, integer, present, required, text, type Untrusted } from "./payload.ts";

/**
 * A work item. In events of changes `fields` has what changed, with the old and the new value, and `revision` the whole item; in
 * others `fields` has all values.
 */
export type WorkItem = NonNullable<
  Untrusted<{
    id: unknown;
    workItemId?: unknown;
    rev: unknown;
    fields?: Record<string, object>;
    /** https://learn.microsoft.com/rest/api/azure/devops/wit/work-items/get-work-item#workitemcommentversionref */
    commentVersionRef?: { commentId: unknown };
    revision?: { fields?: Record<string, object> };
    _links?: { html?: { href: unknown } };
    url?: unknown;
  }>
>;
type Fields = Readonly<Record<string, unknown>> | null | undefined;

/** States in which no work is expected any more, in the processes that Azure DevOps comes with. */
const closedStates = new Set<unknown>(["Closed", "Done", "Resolved", "Completed", "Removed"]);

/**
 * The repository that a work item is about: work items are a project's, which has a repository of its name from the beginning
 * (https://learn.microsoft.com/azure/devops/repos/git/create-new-repo). Another one is a setting of the connection.
 */
export function repositoryOfWorkItem(resource: object, envelope: object): ForgeEvent["repository"] {
  const given = resource as WorkItem;
  const all: Fields = given.revision?.fields ?? given.fields;
  const project = text(all?.["System.TeamProject"], longest.name);
  const { resourceContainers: containers } = envelope as NonNullable<
    Untrusted<{ resourceContainers?: { collection?: { baseUrl?: unknown } } }>
  >;
  const ofApi = /^(?<base>https?:\/\/[^?#]+?)(?:\/[0-9a-f-]{36})?\/_apis\/wit\//iu.exec(
    text(given.url, longest.url) ?? "",
  );
  const base = text(containers?.collection?.baseUrl, longest.url) ?? ofApi?.groups?.["base"] ?? null;
  if (project === null || project === "" || base === null) return null;
  const path = encodeURIComponent(project);
  return {
    url: `${base.replace(/\/+$/u, "")}/${path}/_git/${path}`,
    fullName: `${project}/${project}`,
    defaultBranch: null,
  };
}

/**
 * An event in the repository that a connection names for the project of its work item.
 * @param repositories names of repositories by their projects; null: each has its project's name
 */
export function inRepositoryOf(
  delivered: InboundEvent,
  repositories: Readonly<Record<string, string>> | null,
): InboundEvent {
  const event = delivered.event as unknown as ForgeEvent;
  const { repository } = event;
  if (event.issue === undefined || repository === null || repositories === null) return delivered;
  const [project = ""] = repository.fullName.split("/", 1);
  const name = Object.entries(repositories).find(([each]) => each.toLowerCase() === project.toLowerCase())?.[1];
  if (name === undefined) return delivered;
  const url = repository.url.replace(/[^/]+$/u, encodeURIComponent(name));
  return { ...delivered, event: { ...event, repository: { ...repository, url, fullName: `${project}/${name}` } } };
}

/** A work item was made: an issue. Its tags and its person are reported like later ones. */
export function workItemCreated(resource: object, envelope: object): ForgeHappening[] {
  const given = resource as WorkItem;
  const about = issue(given, given.fields);
  const base = baseOf(given, about, envelope);
  return [
    { ...base, name: "issue.opened", fields: { ...base.fields, transition: "opened" } },
    ...about.labels.map((label) => labelled(base, label)),
    ...about.assignees.map((assignee) => assigned(base, assignee)),
  ];
}

/** A work item changed. */
export function workItemChanged(resource: object, envelope: object): ForgeHappening[] {
  const given = resource as WorkItem;
  const about = issue(given, given.revision?.fields);
  const base = baseOf(given, about, envelope);
  const change = (name: string): { before: unknown; after: unknown } => {
    const both: Untrusted<{ oldValue?: unknown; newValue?: unknown }> = given.fields?.[name];
    return { before: both?.oldValue, after: both?.newValue };
  };
  const state = change("System.State");
  const isEnd = closedStates.has(state.after);
  const turn: ForgeHappening[] =
    typeof state.after !== "string" || isEnd === closedStates.has(state.before)
      ? []
      : [
          isEnd
            ? { ...base, name: "issue.closed" }
            : { ...base, name: "issue.opened", fields: { ...base.fields, transition: "reopened" } },
        ];
  const tags = change("System.Tags");
  const before = new Set(tagsOf(tags.before));
  const assignee = person(change("System.AssignedTo").after);
  return [
    ...turn,
    ...tagsOf(tags.after).flatMap((tag) => (before.has(tag) ? [] : [labelled(base, tag)])),
    ...(assignee === null ? [] : [assigned(base, assignee)]),
  ];
}

/**
 * A comment in the discussion of a work item. Newer servers name the comment beside the item; of others only the item's
 * revision has a number.
 */
export function workItemCommented(resource: object, envelope: object): ForgeHappening[] {
  const given = resource as WorkItem;
  const about = issue(given, given.fields);
  const base = baseOf(given, about, envelope);
  const fields: Fields = given.fields;
  const comment = {
    id: identifier(given.commentVersionRef?.commentId) ?? required(identifier(given.rev), "resource.rev"),
    body: textOfHtml(text(fields?.["System.History"], longest.body) ?? ""),
    url: null,
    author: person(fields?.["System.ChangedBy"]),
    path: null,
    line: null,
    hunk: null,
    threadId: null,
  };
  return [{ ...base, name: "issue.commented", fields: { ...base.fields, comment } }];
}

function issue(given: WorkItem, all: Fields): NonNullable<ForgeEvent["issue"]> {
  const number = required(integer(given.workItemId) ?? integer(given.id), "resource.id");
  return {
    number,
    title: text(all?.["System.Title"], longest.title) ?? "",
    body: textOfHtml(text(all?.["System.Description"], longest.body) ?? ""),
    url: text(given._links?.html?.href, longest.url) ?? text(given.url, longest.url) ?? `#workitem/${number}`,
    state: closedStates.has(all?.["System.State"]) ? "closed" : "open",
    labels: tagsOf(all?.["System.Tags"]),
    assignees: present([person(all?.["System.AssignedTo"])]),
    author: person(all?.["System.CreatedBy"]),
  };
}

/** The revision distinguishes changes; ids of work items are unique in an organization, which the container names. */
function baseOf(given: WorkItem, about: NonNullable<ForgeEvent["issue"]>, envelope: object) {
  const all: Fields = given.revision?.fields ?? given.fields;
  const actor = person(all?.["System.ChangedBy"]) ?? about.author;
  const { resourceContainers: containers } = envelope as NonNullable<
    Untrusted<{ resourceContainers?: { collection?: { id: unknown } } }>
  >;
  const organization = identifier(containers?.collection?.id) ?? "";
  return {
    key: [organization, about.number, identifier(given.rev)],
    subject: about.url,
    fields: { issue: about, actor },
  } as const;
}

type Base = ReturnType<typeof baseOf>;

function labelled(base: Base, label: string): ForgeHappening {
  return { ...base, name: "issue.labeled", key: [...base.key, label], fields: { ...base.fields, label } };
}

function assigned(base: Base, assignee: ForgeAccount): ForgeHappening {
  return { ...base, name: "issue.assigned", key: [...base.key, assignee.login], fields: { ...base.fields, assignee } };
}

/** Tags are one text, with semicolons between. */
function tagsOf(value: unknown): string[] {
  const tags = (text(value, longest.body) ?? "").split(";").map((tag) => text(tag.trim(), longest.name));
  return present(tags.filter((tag) => tag !== "")).slice(0, most.labels);
}

/** A person: an identity, or its names as one text, without an id: `Jamal Hartnett <fabrikamfiber4@hotmail.com>`. */
function person(value: unknown): ForgeAccount | null {
  if (typeof value !== "string") return account(value as Untrusted<Identity>);
  const { shown = value, unique } = /^(?<shown>.*?)\s*<(?<unique>[^<>]{1,500})>\s*$/u.exec(value)?.groups ?? {};
  return account({ displayName: shown, uniqueName: unique });
}
