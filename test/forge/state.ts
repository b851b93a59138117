import type { RegisteredApp } from "./github-app.ts";

/** A pull request as the forge keeps it; its commits are whatever the refs say. */
export interface TestPullRequest {
  readonly number: number;
  readonly title: string;
  readonly body: string;
  readonly head: string;
  readonly base: string;
  readonly state: "open" | "closed" | "merged";
}

/** Something that goes wrong the next time. */
export type Failure =
  | { readonly kind: "rejectPush"; readonly owner: string; readonly name: string; readonly message: string }
  | { readonly kind: "status"; readonly status: number }
  /** A request is taken and never answered. */
  | { readonly kind: "hang"; readonly at: "fetch" | "push" | "api" }
  /** The pull request is opened, and the connection cut before the answer. */
  | { readonly kind: "loseAnswer" };

export interface ForgeState {
  readonly root: string;
  readonly token: string;
  /** Every token that is good: the one above, and those given to the App. */
  readonly tokens: Set<string>;
  app: RegisteredApp | null;
  /** Commits of which it was asked whether they can be merged. */
  readonly mergeableAsked: Set<string>;
  readonly pulls: Map<string, TestPullRequest[]>;
  readonly failures: Exclude<Failure, { kind: "rejectPush" }>[];
  url: string;
}

export const gitEnvironment = {
  PATH: process.env["PATH"],
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_AUTHOR_NAME: "Forge",
  GIT_AUTHOR_EMAIL: "forge@localhost",
  GIT_COMMITTER_NAME: "Forge",
  GIT_COMMITTER_EMAIL: "forge@localhost",
};
