import { azureNamesOf, guidOf, projectIdOf, repositoryIdOf } from "./azure-places.ts";
import type { ListedCommit } from "./commits.ts";
import { tokenUser, type ForgeState, type KeptComment, type KeptPullRequest, type Lines, type Place } from "./state.ts";

// The shapes of Azure DevOps itself: `azure-specs.test.ts` holds them against its published descriptions.

const began = "2026-01-01T00:00:00.0000000Z";

export function identityShape({ url }: Pick<ForgeState, "url">, login = tokenUser) {
  const id = guidOf(`person ${login}`);
  return {
    displayName: login,
    url: `${url}/_apis/Identities/${id}`,
    _links: { avatar: { href: `${url}/_apis/GraphProfile/MemberAvatars/aad.${id}` } },
    id,
    uniqueName: `${login}@example.com`,
    imageUrl: `${url}/_api/_common/identityImage?id=${id}`,
    descriptor: `aad.${id}`,
  };
}

function projectShape(state: ForgeState, place: Place) {
  const names = azureNamesOf(state, place);
  const id = projectIdOf(names);
  return {
    id,
    name: names.project,
    url: `${state.url}/${names.collection}/_apis/projects/${id}`,
    state: "wellFormed",
    revision: 11,
    visibility: "private",
    lastUpdateTime: began,
  };
}

/** The part of a repository by which others name it. */
function shallowShape(state: ForgeState, place: Place) {
  const { collection, repository } = azureNamesOf(state, place);
  const id = repositoryIdOf(place);
  const project = projectShape(state, place);
  return {
    id,
    name: repository,
    url: `${state.url}/${collection}/${project.id}/_apis/git/repositories/${id}`,
    project,
  };
}

export function repositoryShape(state: ForgeState, place: Place, withParent: boolean) {
  const { collection, project, repository } = azureNamesOf(state, place);
  const facts = state.facts.get(`${place.owner}/${place.name}`) ?? {};
  const pageUrl = `${state.url}/${collection}/${project}/_git/${repository}`;
  const parent = { ...place, owner: facts.forkOf ?? "" };
  return {
    ...shallowShape(state, place),
    defaultBranch: "refs/heads/main",
    size: 728,
    // As Services write it: the organization as user's name.
    remoteUrl: pageUrl.replace("://", `://${collection}@`),
    sshUrl: `git@ssh.dev.azure.com:v3/${collection}/${project}/${repository}`,
    webUrl: pageUrl,
    isDisabled: facts.archived ?? false,
    ...(facts.forkOf !== undefined && { isFork: true }),
    ...(facts.forkOf !== undefined &&
      withParent && {
        parentRepository: {
          ...shallowShape(state, parent),
          isFork: false,
          remoteUrl: pageUrl,
          collection: { id: guidOf(collection), name: collection, url: `${state.url}/${collection}/` },
        },
      }),
  };
}

/** What Azure DevOps knows of a pull request beside its text. */
export interface LookedByAzure {
  readonly headSha: string;
  /** Null: it computes the merge still. */
  readonly mergeable: boolean | null;
}

function commitShape(state: ForgeState, place: Place, commitId: string) {
  return { commitId, url: `${shallowShape(state, place).url}/commits/${commitId}` };
}

/** @param isListed in lists the description ends after 400 characters */
export function azurePullShape(
  state: ForgeState,
  place: Place,
  pull: KeptPullRequest,
  { headSha, mergeable, isListed }: LookedByAzure & { readonly isListed: boolean },
) {
  const repository = shallowShape(state, place);
  const description = isListed ? pull.body.slice(0, 400) : pull.body;
  const status = { open: "active", merged: "completed", closed: "abandoned" }[pull.state];
  return {
    repository: isListed ? repository : { ...repository, remoteUrl: repositoryShape(state, place, false).webUrl },
    pullRequestId: pull.number,
    codeReviewId: pull.number,
    status,
    createdBy: identityShape(state),
    creationDate: began,
    ...(pull.state !== "open" && { closedDate: began }),
    title: pull.title,
    ...(description !== "" && { description }),
    sourceRefName: `refs/heads/${pull.head}`,
    targetRefName: `refs/heads/${pull.base}`,
    mergeStatus:
      pull.state !== "open" || mergeable === true ? "succeeded" : mergeable === null ? "queued" : "conflicts",
    isDraft: pull.draft ?? false,
    mergeId: guidOf(`merge ${place.owner}/${place.name} ${pull.number}`),
    lastMergeSourceCommit: commitShape(state, place, headSha),
    lastMergeTargetCommit: commitShape(state, place, pull.baseSha),
    reviewers: (pull.reviewers ?? []).map((each) => ({ ...identityShape(state, each), vote: 0 })),
    ...(pull.headOwner !== null && {
      forkSource: {
        repository: shallowShape(state, { ...place, owner: pull.headOwner }),
        name: `refs/heads/${pull.head}`,
        url: `${repository.url}/refs/heads/${pull.head}`,
      },
    }),
    url: `${repository.url}/pullRequests/${pull.number}`,
    supportsIterations: true,
    ...(!isListed && {
      artifactId: `vstfs:///Git/PullRequestId/${repository.project.id}%2f${repository.id}%2f${pull.number}`,
    }),
  };
}

export function azureCommitShape(state: ForgeState, place: Place, commit: ListedCommit) {
  const by = { name: commit.author, email: commit.email, date: commit.date };
  return {
    ...commitShape(state, place, commit.sha),
    author: by,
    committer: by,
    comment: commit.message,
  };
}

export function azureRefShape(state: ForgeState, place: Place, branch: string, objectId: string) {
  const name = `refs/heads/${branch}`;
  return {
    name,
    objectId,
    creator: identityShape(state),
    url: `${shallowShape(state, place).url}/refs?filter=heads/${branch}`,
  };
}

/** A comment of a pull request: its number counts in its thread alone. */
export function threadCommentShape(state: ForgeState, { id, body, createdAt }: Omit<KeptComment, "shownFrom">) {
  return {
    id,
    parentCommentId: 0,
    author: identityShape(state),
    content: body,
    publishedDate: createdAt,
    lastUpdatedDate: createdAt,
    lastContentUpdatedDate: createdAt,
    commentType: "text",
    usersLiked: [],
    _links: {},
  };
}

export function threadShape(
  state: ForgeState,
  id: number,
  comments: readonly Omit<KeptComment, "shownFrom">[],
  { status, likes }: { readonly status: string; readonly likes: number },
) {
  const at = comments[0]?.createdAt ?? began;
  return {
    pullRequestThreadContext: null,
    id,
    publishedDate: at,
    lastUpdatedDate: at,
    comments: comments.map((comment, index) => ({
      ...threadCommentShape(state, comment),
      usersLiked: index === 0 ? Array.from({ length: likes }, () => identityShape(state)) : [],
    })),
    status,
    threadContext: contextShape(comments[0]?.lines),
    properties: {},
    identities: null,
    isDeleted: false,
    _links: {},
  };
}

/** The position of a thread: on lines of the newer file. */
function contextShape(lines: Lines | undefined) {
  if (lines === undefined) return null;
  const at = { line: lines.line, offset: 1 };
  return { filePath: `/${lines.path}`, leftFileStart: null, leftFileEnd: null, rightFileStart: at, rightFileEnd: at };
}

export function workItemCommentShape(state: ForgeState, { id, number, body, createdAt }: KeptComment) {
  return {
    workItemId: number,
    id,
    version: 1,
    text: body,
    createdBy: identityShape(state),
    createdDate: createdAt,
    modifiedBy: identityShape(state),
    modifiedDate: createdAt,
    url: `${state.url}/_apis/wit/workItems/${number}/comments/${id}`,
  };
}

/** By which permissions name a person. */
export const descriptorOf = (login: string): string =>
  `Microsoft.IdentityModel.Claims.ClaimsIdentity;${guidOf("tenant")}\\${login}@example.com`;

/** A person as the service of identities knows them. */
export function knownIdentity(login: string) {
  const id = guidOf(`person ${login}`);
  return {
    id,
    descriptor: descriptorOf(login),
    subjectDescriptor: `aad.${id}`,
    providerDisplayName: login,
    isActive: true,
    isContainer: false,
    members: [],
    memberOf: [],
    memberIds: [],
    masterId: id,
    properties: { Account: { $type: "System.String", $value: `${login}@example.com` } },
    resourceVersion: 2,
    metaTypeId: 0,
  };
}
