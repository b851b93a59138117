import type { ListedCommit } from "./commits.ts";
import { idOf } from "./feedback.ts";
import { tokenUser, type KeptComment, type KeptPullRequest, type Place, type RepositoryFacts } from "./state.ts";

const began = 1_767_225_600_000;

/** The key of an owner's project: that of a person begins with a tilde. */
export const keyOf = (owner: string): string => (owner === tokenUser ? `~${owner}` : owner);

export function dataCenterUserShape(name: string) {
  return {
    name,
    emailAddress: `${name}@acme.example`,
    active: true,
    displayName: name,
    id: idOf(name),
    slug: name,
    type: "NORMAL",
    links: {},
  };
}

export function dataCenterRepositoryShape({ webUrl, owner, name }: Place, facts: RepositoryFacts): object {
  const key = keyOf(owner);
  const isPersonal = key.startsWith("~");
  return {
    slug: name,
    id: 1,
    // As people write it.
    name: `Repository ${name}`,
    hierarchyId: "e3c939f9ef4a7fae272e",
    scmId: "git",
    state: "AVAILABLE",
    statusMessage: "Available",
    forkable: facts.allowForking !== false,
    project: { key, id: 1, name: owner, public: false, type: isPersonal ? "PERSONAL" : "NORMAL", links: {} },
    public: false,
    archived: facts.archived === true,
    ...(facts.forkOf !== undefined && {
      origin: dataCenterRepositoryShape({ webUrl, owner: facts.forkOf, name }, {}),
    }),
    links: { clone: [{ href: `${webUrl}/scm/${key}/${name}.git`, name: "http" }] },
  };
}

export function dataCenterPullRequestShape(place: Place, pull: KeptPullRequest, sha: string) {
  const { webUrl, owner, name } = place;
  const ref = (branch: string, commit: string, of: Place) => ({
    id: `refs/heads/${branch}`,
    displayId: branch,
    latestCommit: commit,
    type: "BRANCH",
    repository: dataCenterRepositoryShape(of, {}),
  });
  const isOpen = pull.state === "open";
  const participant = (user: string, role: string) => ({
    user: dataCenterUserShape(user),
    role,
    approved: false,
    status: "UNAPPROVED",
  });
  return {
    id: pull.number,
    version: pull.version ?? 0,
    title: pull.title,
    description: pull.body,
    state: { open: "OPEN", merged: "MERGED", closed: "DECLINED" }[pull.state],
    open: isOpen,
    closed: !isOpen,
    draft: pull.draft ?? false,
    locked: false,
    createdDate: Date.parse(pull.openedOn),
    updatedDate: began,
    fromRef: ref(pull.head, sha, { ...place, owner: pull.headOwner ?? owner }),
    toRef: ref(pull.base, pull.baseSha, place),
    reviewers: (pull.reviewers ?? []).map((each) => participant(each, "REVIEWER")),
    participants: [],
    links: { self: [{ href: `${webUrl}/projects/${keyOf(owner)}/repos/${name}/pull-requests/${pull.number}` }] },
  };
}

export function dataCenterCommitShape(commit: ListedCommit) {
  const person = { name: commit.author, emailAddress: commit.email };
  const at = Date.parse(commit.date);
  return {
    id: commit.sha,
    displayId: commit.sha.slice(0, 11),
    author: person,
    authorTimestamp: at,
    committer: person,
    committerTimestamp: at,
    message: commit.message,
    parents: commit.parents.map((id) => ({ id, displayId: id.slice(0, 11) })),
  };
}

/** @param told `isResolved` null: the server is too old to resolve threads */
export function dataCenterCommentShape(
  comment: KeptComment,
  answers: readonly KeptComment[] = [],
  { isResolved, reactions }: { readonly isResolved: boolean | null; readonly reactions: readonly string[] } = {
    isResolved: false,
    reactions: [],
  },
): object {
  const at = Date.parse(comment.createdAt);
  return {
    properties: { reactions: reactions.map((shortcut) => ({ emoticon: { shortcut }, users: [] })) },
    id: comment.id,
    version: isResolved === true ? 1 : 0,
    text: comment.body,
    author: dataCenterUserShape(tokenUser),
    createdDate: at,
    updatedDate: at,
    comments: answers.map((each) => dataCenterCommentShape(each)),
    ...(isResolved !== null && { threadResolved: isResolved }),
    severity: "NORMAL",
    state: "OPEN",
  };
}

/** A hunk as git writes it, as Data Center answers it: runs of lines of one kind. */
export function dataCenterHunkShape(hunk: string) {
  const [header = "", ...written] = hunk.trimEnd().split("\n");
  const [sourceLine = 0, sourceSpan = 1, destinationLine = 0, destinationSpan = 1] = [
    ...(/^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/u.exec(header) ?? []),
  ]
    .slice(1)
    .map((number) => (number === undefined ? undefined : Number(number)));
  let [source, destination] = [sourceLine, destinationLine];
  const kinds = { "+": "ADDED", "-": "REMOVED", " ": "CONTEXT" } as const;
  const segments: { type: string; lines: object[]; truncated: boolean }[] = [];
  for (const line of written) {
    const type = kinds[line[0] as keyof typeof kinds];
    if (type === undefined) continue;
    if (segments.at(-1)?.type !== type) segments.push({ type, lines: [], truncated: false });
    segments.at(-1)?.lines.push({ source, destination, line: line.slice(1), truncated: false });
    if (type !== "ADDED") source += 1;
    if (type !== "REMOVED") destination += 1;
  }
  return { context: "", sourceLine, sourceSpan, destinationLine, destinationSpan, segments, truncated: false };
}
