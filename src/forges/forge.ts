import type { RepositoryAddress } from "../domain/repositories/repository.ts";

/** Credentials of a repository: passed to the one git process in its environment, never stored. */
export interface GitCredentials {
  readonly username: string;
  readonly password: string;
}

/** A pull request on a forge. */
export interface ForgePullRequest {
  readonly number: number;
  readonly url: string;
  readonly state: "open" | "merged" | "closed";
  readonly head: string;
  readonly target: string;
  /**
   * Whether it goes together with its target branch by itself; null if the forge does not know yet, or does not say (in lists).
   */
  readonly mergeable: boolean | null;
}

/** The pull request to open. */
export interface OpenPullRequest {
  readonly head: string;
  readonly target: string;
  readonly title: string;
  readonly body: string;
}

/**
 * A server of repositories. Adapters throw `SessionError` with the codes `repository_not_found`,
 * `repository_access_denied`, `forge_unavailable`, `pull_request_refused`. Every call takes a signal and has a time
 * limit of its own.
 */
export interface Forge {
  readonly kind: "github" | "gitea" | "git";
  /** Stable id and display name, for the API's `integration`. */
  readonly id: string;
  readonly name: string;
  readonly webUrl: string | null;
  /** Whether this forge serves the address. */
  serves(address: RepositoryAddress): boolean;
  /** Null if none is needed or configured. Ask for them when needed: an App's token is valid for an hour. */
  credentials(address: RepositoryAddress, signal: AbortSignal): Promise<GitCredentials | null>;
  /** False for plain git: the pushed branch is the result. */
  readonly opensPullRequests: boolean;
  /** Finds the branch's open pull request, else its newest closed or merged one, else null. */
  findPullRequest(
    address: RepositoryAddress,
    head: string,
    target: string,
    signal: AbortSignal,
  ): Promise<ForgePullRequest | null>;
  /**
   * Opens a pull request unless one is open: looks before, and again on a conflict. `created` is false if one was open.
   */
  openPullRequest(
    address: RepositoryAddress,
    request: OpenPullRequest,
    signal: AbortSignal,
  ): Promise<ForgePullRequest & { readonly created: boolean }>;
  readPullRequest(address: RepositoryAddress, number: number, signal: AbortSignal): Promise<ForgePullRequest>;
  /**
   * Changes the body of a pull request.
   * @param edit gets the body as it is now; null: it stays so
   */
  editPullRequest(
    address: RepositoryAddress,
    number: number,
    edit: (body: string) => string | null,
    signal: AbortSignal,
  ): Promise<void>;
}

/** Configuration of one forge, as `config.ts` parses it. */
export type ForgeSettings =
  | {
      readonly kind: "github";
      /** `https://github.com`, or an Enterprise server's address. */
      readonly webUrl: string;
      /** `https://api.github.com`, or `<enterprise>/api/v3`. */
      readonly apiUrl: string;
      readonly token?: string | undefined;
      readonly app?: { readonly id: string; readonly privateKey: string } | undefined;
    }
  | { readonly kind: "gitea"; readonly webUrl: string; readonly apiUrl: string; readonly token?: string | undefined }
  | {
      readonly kind: "git";
      readonly webUrl: string;
      readonly username?: string | undefined;
      readonly token?: string | undefined;
    };
