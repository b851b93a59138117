import type { ApprovalRules } from "../domain/repositories/approval.ts";
import type { PullRequestMark } from "../domain/repositories/pull-request-mark.ts";
import type { ForgeKind, RepositoryAddress } from "../domain/repositories/repository.ts";
import type { ForgeBrowser } from "./browse.ts";
import type { Feedback } from "./feedback/feedback.ts";
import type { ForgeAnswer, ForgeRequest } from "./http/http.ts";

/** Credentials of a repository: passed to the one git process in its environment, never stored. */
export interface GitCredentials {
  readonly username: string;
  readonly password: string;
}

/** Sends one request about a repository. */
export type RepositoryCall = (
  address: RepositoryAddress,
  method: ForgeRequest["method"],
  path: string,
  signal: AbortSignal,
  options?: Pick<ForgeRequest, "body" | "onceWithinMs" | "takesPage">,
) => Promise<ForgeAnswer>;

/** A person's own account at a forge, with its credential. */
export interface OpenedAccount {
  readonly kind: ForgeKind;
  readonly webUrl: string;
  /** The address at which its credential was checked: it is sent nowhere else. */
  readonly apiUrl: string;
  readonly token: string;
  /** As that of `ForgeSettings`, of the kinds that have one. */
  readonly username?: string | undefined;
}

/** The person in whose name a pull request is opened. */
export interface PullRequestOpener {
  /** Sends a request with their credential. */
  readonly call: RepositoryCall;
  /** Called if the forge does not let them open it, which nothing was opened by; it is then asked for as the forge itself does. */
  readonly refused: (refusal: OpenerRefusal) => Promise<void>;
  /**
   * Called if the forge does not take their request now, for a reason that passes, such as a limit of their credential; the forge's own
   * account asks then.
   */
  readonly limited: (reason: string) => Promise<void>;
}

/** Why a forge did not let a person open a pull request. */
export interface OpenerRefusal {
  /** Whether it takes the credential for nothing at all; if not, it may be good for other repositories. */
  readonly isOfCredential: boolean;
  /** The forge's own. */
  readonly words: string;
}

/** A pull request on a forge. */
export interface ForgePullRequest {
  readonly number: number;
  readonly url: string;
  readonly state: "open" | "merged" | "closed";
  readonly head: string;
  readonly target: string;
  /**
   * Whether it can be merged into its target branch without a conflict; null if the forge does not know yet, or does
   * not say (in lists).
   */
  readonly mergeable: boolean | null;
  /** The commit that the forge names as its head; Gitea names the branch's even if the pull request is closed. */
  readonly headSha: string;
  /** Offstage's own mark in the body; null if there is none. */
  readonly mark: PullRequestMark | null;
  /** The commit on the target branch that it became. Omitted: it is not merged, or deliveries say it. */
  readonly mergeSha?: string;
  /** Omitted: the forge does not say. */
  readonly draft?: boolean;
  /** Whether its branch is in the repository itself and not in a fork. Omitted: who reads it from this forge needs no word on that. */
  readonly isFromHere?: boolean;
}

/** The pull request to open. */
export interface OpenPullRequest {
  readonly head: string;
  readonly target: string;
  /** The fork that has the branch; omitted: the repository itself. */
  readonly from?: RepositoryAddress | undefined;
  readonly title: string;
  readonly body: string;
  /** Whether it is opened as a draft, if the forge and the repository have drafts. */
  readonly draft?: boolean;
  /**
   * The work that it is for. It goes into the body as a mark, and a closed or merged pull request for it counts as well. Omitted:
   * only an open one counts.
   */
  readonly work?: PullRequestWork;
  /** In whose name it is opened, if the forge lets them; nothing else is done in their name. Omitted: in the forge's own. */
  readonly opener?: PullRequestOpener | undefined;
}

/** The pushed work of a session, for which there is at most one pull request. */
export interface PullRequestWork extends PullRequestMark {
  /** Time since an earlier attempt asked for it and did not learn the answer, in ms; null if none did. */
  readonly askedMsAgo: number | null;
  /**
   * Called before each request to open it: its record shows the next attempt that one may have been opened.
   * @param opener in whose name; null: in the forge's own
   */
  readonly beforeAsking: (opener: PullRequestOpener | null) => Promise<void>;
}

/** The rights on a repository, as the forge reports them. Null: it does not report them. */
export interface RepositoryAccess {
  /**
   * The forge's word for why a repository is read-only (archived, disabled or a mirror of another), or null if it is
   * not.
   */
  readonly readOnly: string | null;
  /** Whether the token may push. */
  readonly mayPush: boolean | null;
  readonly hasPullRequests: boolean | null;
  /** Whether the token may open pull requests, if the forge distinguishes that from pushing; omitted: it does not. */
  readonly mayOpenPullRequests?: boolean;
  /** Whether the token may change files in `.github/workflows`. */
  readonly mayChangeWorkflows: boolean | null;
  /** Whether the token's user may have a fork of it. */
  readonly mayFork: boolean | null;
  /** The forge's rules for pushes to the work branch, in its own words; people may be exempt from them. */
  readonly rules: readonly string[];
}

/**
 * A server of repositories. Adapters throw `SessionError` with the codes `repository_not_found`,
 * `repository_access_denied`, `forge_unavailable`, `pull_request_refused`. Every call takes a signal and has its own
 * time limit.
 */
export interface Forge {
  readonly kind: ForgeKind;
  /** Stable id and display name, for the API's `integration`. */
  readonly id: string;
  readonly name: string;
  readonly webUrl: string | null;
  /** False if an organization named its server: it is contacted at public addresses alone. Omitted: the operator named it. */
  readonly namedByOperator?: boolean;
  /** Whether this forge serves the address. */
  serves(address: RepositoryAddress): boolean;
  /** Null if none is needed or configured. Ask for them when needed: an App's token is valid for an hour. */
  credentials(address: RepositoryAddress, signal: AbortSignal): Promise<GitCredentials | null>;
  /** The tokens that the forge gave out for the configured credential, and takes still, for masks. Omitted: there are none. */
  issuedTokens?(): readonly string[];
  /** False for plain git: the pushed branch is the result. */
  readonly opensPullRequests: boolean;
  /** Full name of the ref of the repository that has a pull request's newest commit, a fork's too. Null: the forge has none. */
  readonly pullRequestRef: ((number: number) => string) | null;
  /**
   * The part between a repository's address and the commit in the address of a file's page. Null: its addresses have
   * another form.
   */
  readonly filePages: string | null;
  /** The address of a commit's page, however the repository's own is written. Null: the forge has no pages. */
  readonly commitPage: ((address: RepositoryAddress, sha: string) => string) | null;
  /** Sends one request about a repository with the forge's own credential. Null: it has no API. */
  readonly call: RepositoryCall | null;
  /**
   * As `call`, with a person's credential in the place of the forge's, of which nothing else is used. Omitted: it has no API.
   * @returns null if the account is of another kind, or was checked at another address of the API: its credential is sent to no other
   */
  as?(account: OpenedAccount): Promise<RepositoryCall | null>;
  /**
   * Finds the branch's open pull request, else its newest closed or merged one, else null.
   * @param from the fork that has the branch; omitted: the repository itself
   */
  findPullRequest(
    address: RepositoryAddress,
    head: string,
    target: string,
    signal: AbortSignal,
    from?: RepositoryAddress,
  ): Promise<ForgePullRequest | null>;
  /**
   * Opens a pull request unless there is one: searches before, and again if the forge says that one exists or its
   * answer is lost. Waits a while for a forge that does not know yet what was just pushed or opened. `created` is false
   * if this session did not open it.
   */
  openPullRequest(
    address: RepositoryAddress,
    request: OpenPullRequest,
    signal: AbortSignal,
  ): Promise<ForgePullRequest & { readonly created: boolean }>;
  readPullRequest(address: RepositoryAddress, number: number, signal: AbortSignal): Promise<ForgePullRequest>;
  /**
   * Changes the body of a pull request.
   * @param edit gets the body as it is now, and the state; null: it stays so
   */
  editPullRequest(
    address: RepositoryAddress,
    number: number,
    edit: (body: string, state: ForgePullRequest["state"]) => string | null,
    signal: AbortSignal,
  ): Promise<void>;
  /**
   * Reads the rights on a repository, with two requests, or four if its answer is about the user and not about the
   * token.
   * @param branch the work branch
   * @param options.isNeeded whether an answer is worth waiting for; if not, it is asked once, for a look before work begins
   * @returns null if the forge has no such API
   */
  readAccess(
    address: RepositoryAddress,
    branch: string,
    signal: AbortSignal,
    options?: { readonly isNeeded?: boolean },
  ): Promise<RepositoryAccess | null>;
  /**
   * Reads who may approve pull requests into a branch, with at most two requests, each sent once.
   * @returns null if it does not say, or asks for no approval. Omitted: this forge shows it only to its
   *   administrators, or not at all
   */
  readApprovalRules?(address: RepositoryAddress, target: string, signal: AbortSignal): Promise<ApprovalRules | null>;
  /**
   * Makes a fork of a repository for the token's user, or finds the existing one, and waits until it can be pushed to.
   * @throws SessionError repository_access_denied if the forge makes none, forge_unavailable if it takes long
   */
  fork(address: RepositoryAddress, signal: AbortSignal): Promise<RepositoryAddress>;
  /** Null for plain git, which has nowhere to answer. */
  readonly feedback: Feedback | null;
  /** Null for plain git, which has no list of repositories. */
  readonly browse: ForgeBrowser | null;
  /** The path of its one owner below its server; "" or omitted: it serves all of the server. */
  readonly within?: string;
}

/** Configuration of one forge, as `config.ts` parses it. */
export type ForgeSettings =
  | {
      readonly kind: "azure";
      /** `https://dev.azure.com`, a server's own address, or that of one organization or collection there. */
      readonly webUrl: string;
      /** The server's address: `https://dev.azure.com`, or `https://<server>/<path>` before the collection. */
      readonly apiUrl: string;
      readonly token?: string | undefined;
    }
  | {
      readonly kind: "github";
      /** `https://github.com`, or an Enterprise server's address, or that of one owner there. */
      readonly webUrl: string;
      /** `https://api.github.com`, or `<enterprise>/api/v3`. */
      readonly apiUrl: string;
      readonly token?: string | undefined;
      readonly app?: { readonly id: string; readonly privateKey: string } | undefined;
    }
  | {
      readonly kind: "gitlab";
      /** `https://gitlab.com`, or a server's own address, with its path if it is below one. */
      readonly webUrl: string;
      /** `<webUrl>/api/v4`. */
      readonly apiUrl: string;
      readonly token?: string | undefined;
    }
  | { readonly kind: "gitea"; readonly webUrl: string; readonly apiUrl: string; readonly token?: string | undefined }
  | {
      readonly kind: "bitbucket";
      /** `https://bitbucket.org`, or that of one workspace there. */
      readonly webUrl: string;
      /** `https://api.bitbucket.org/2.0`. */
      readonly apiUrl: string;
      /** The account's e-mail address, of an API token; omitted: an access token of a repository, project or workspace. */
      readonly username?: string | undefined;
      readonly token?: string | undefined;
    }
  | {
      readonly kind: "bitbucketDataCenter";
      /** A server's own address, with its path if it is below one, or that of one project on it (`<server>/scm/PROJECT`). */
      readonly webUrl: string;
      /** `<server>/rest/api/latest`. */
      readonly apiUrl: string;
      /** Of git, for a person's token; omitted: a token of a project or repository. */
      readonly username?: string | undefined;
      readonly token?: string | undefined;
    }
  | {
      readonly kind: "git";
      readonly webUrl: string;
      readonly username?: string | undefined;
      readonly token?: string | undefined;
    };
