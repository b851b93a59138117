import type { RepositoryAddress } from "../domain/repository.ts";

/** What git needs to reach a repository: handed to the one git process through its environment, never written down. */
export interface GitCredentials {
  readonly username: string;
  readonly password: string;
}

export interface ForgePullRequest {
  readonly number: number;
  readonly url: string;
  readonly state: "open" | "merged" | "closed";
  readonly head: string;
  readonly target: string;
}

export interface OpenPullRequest {
  readonly head: string;
  readonly target: string;
  readonly title: string;
  readonly body: string;
}

/**
 * A place where repositories live. Adapters raise `RunError` with the codes
 * `repository_not_found`, `repository_access_denied`, `forge_unavailable`, `pull_request_refused`.
 * Every call takes a signal and has a time limit of its own.
 */
export interface Forge {
  readonly kind: "github" | "gitea" | "git";
  /** Stable id and display name, for the API's `integration`. */
  readonly id: string;
  readonly name: string;
  readonly webUrl: string | null;
  /** Whether this forge serves the address. */
  serves(address: RepositoryAddress): boolean;
  /** Null where none is needed or configured. Fetched when asked for: an App's token lives an hour. */
  credentials(address: RepositoryAddress, signal: AbortSignal): Promise<GitCredentials | null>;
  /** False for plain git: the pushed branch is the result. */
  readonly opensPullRequests: boolean;
  /** An open one first; else the newest closed or merged; else null. */
  findPullRequest(
    address: RepositoryAddress,
    head: string,
    target: string,
    signal: AbortSignal,
  ): Promise<ForgePullRequest | null>;
  /** Looks up before creating, and again on conflict; `created` is false where it was there. */
  openPullRequest(
    address: RepositoryAddress,
    request: OpenPullRequest,
    signal: AbortSignal,
  ): Promise<ForgePullRequest & { readonly created: boolean }>;
  readPullRequest(address: RepositoryAddress, number: number, signal: AbortSignal): Promise<ForgePullRequest>;
}

/** One configured forge, as `config.ts` reads it. */
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
