// Written by scripts/build-clients.ts from the API's description: change that, and run it.
/* eslint-disable */
export type SessionCreateBody = SessionCreateBody1 & SessionCreateBody2;
export type SessionCreateBody1 = {
  [k: string]: unknown;
};
export type SessionEvent =
  | {
      seq: number;
      createdAt: string;
      type: "session.created";
      data: {
        title: string;
      };
    }
  | {
      seq: number;
      createdAt: string;
      type: "session.status";
      data: {
        from: "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled";
        to: "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled";
        reason?: string;
        failure?: {
          code:
            | "agent_unavailable"
            | "agent_crashed"
            | "agent_stalled"
            | "turn_too_long"
            | "agent_refused"
            | "model_error"
            | "sandbox_unavailable"
            | "resources_exhausted"
            | "disk_full"
            | "secret_unavailable"
            | "secret_in_work"
            | "token_in_work"
            | "setup_failed"
            | "gate_failed"
            | "signing_failed"
            | "workspace_broken"
            | "repository_not_allowed"
            | "repository_not_found"
            | "repository_access_denied"
            | "repository_unreachable"
            | "target_branch_not_found"
            | "branch_protected"
            | "branch_diverged"
            | "push_rejected"
            | "pull_request_refused"
            | "forge_unavailable"
            | "object_store_unavailable"
            | "worker_lost"
            | "too_many_attempts"
            | "internal";
          reason: string;
          retryable: boolean;
          passing?: boolean;
          remedy: string;
        };
        retry?: {
          at: string;
          reason: string;
          code:
            | "agent_unavailable"
            | "agent_crashed"
            | "agent_stalled"
            | "turn_too_long"
            | "agent_refused"
            | "model_error"
            | "sandbox_unavailable"
            | "resources_exhausted"
            | "disk_full"
            | "secret_unavailable"
            | "secret_in_work"
            | "token_in_work"
            | "setup_failed"
            | "gate_failed"
            | "signing_failed"
            | "workspace_broken"
            | "repository_not_allowed"
            | "repository_not_found"
            | "repository_access_denied"
            | "repository_unreachable"
            | "target_branch_not_found"
            | "branch_protected"
            | "branch_diverged"
            | "push_rejected"
            | "pull_request_refused"
            | "forge_unavailable"
            | "object_store_unavailable"
            | "worker_lost"
            | "too_many_attempts"
            | "internal";
          attempt: number;
        };
      };
    }
  | {
      seq: number;
      createdAt: string;
      type: "notice";
      data: {
        level: "info" | "warning";
        text: string;
      };
    }
  | {
      seq: number;
      createdAt: string;
      type: "message.user";
      data: {
        messageId: string;
        text: string;
        from: string | null;
      };
    }
  | {
      seq: number;
      createdAt: string;
      type: "message.withdrawn";
      data: {
        messageId: string;
      };
    }
  | {
      seq: number;
      createdAt: string;
      type: "step.started";
      data: {
        step: "prepare" | "setup" | "restore" | "gate" | "agent" | "commit" | "push" | "pullRequest";
        attempt: number;
      };
    }
  | {
      seq: number;
      createdAt: string;
      type: "step.progress";
      data: {
        step: "prepare" | "setup" | "restore" | "gate" | "agent" | "commit" | "push" | "pullRequest";
        text: string;
        fraction?: number;
      };
    }
  | {
      seq: number;
      createdAt: string;
      type: "step.completed";
      data: {
        step: "prepare" | "setup" | "restore" | "gate" | "agent" | "commit" | "push" | "pullRequest";
        durationMs: number;
        detail?: string;
      };
    }
  | {
      seq: number;
      createdAt: string;
      type: "step.failed";
      data: {
        step: "prepare" | "setup" | "restore" | "gate" | "agent" | "commit" | "push" | "pullRequest";
        durationMs: number;
        failure: {
          code:
            | "agent_unavailable"
            | "agent_crashed"
            | "agent_stalled"
            | "turn_too_long"
            | "agent_refused"
            | "model_error"
            | "sandbox_unavailable"
            | "resources_exhausted"
            | "disk_full"
            | "secret_unavailable"
            | "secret_in_work"
            | "token_in_work"
            | "setup_failed"
            | "gate_failed"
            | "signing_failed"
            | "workspace_broken"
            | "repository_not_allowed"
            | "repository_not_found"
            | "repository_access_denied"
            | "repository_unreachable"
            | "target_branch_not_found"
            | "branch_protected"
            | "branch_diverged"
            | "push_rejected"
            | "pull_request_refused"
            | "forge_unavailable"
            | "object_store_unavailable"
            | "worker_lost"
            | "too_many_attempts"
            | "internal";
          reason: string;
          retryable: boolean;
          passing?: boolean;
          remedy: string;
        };
      };
    }
  | {
      seq: number;
      createdAt: string;
      type: "setup.output";
      data: {
        repositoryId: string;
        repository: string;
        text: string;
        state: "running" | "completed" | "failed";
      };
    }
  | {
      seq: number;
      createdAt: string;
      type: "gate.decided";
      data: {
        outcome: "passed" | "filtered" | "failed";
        code: number | null;
        output: string;
        log: string;
      };
    }
  | {
      seq: number;
      createdAt: string;
      type: "agent.started";
      data: {
        provider: string;
        model: string | null;
        resumed: boolean;
      };
    }
  | {
      seq: number;
      createdAt: string;
      type: "agent.message";
      data: {
        part: string;
        text: string;
      };
    }
  | {
      seq: number;
      createdAt: string;
      type: "agent.thought";
      data: {
        part: string;
        text: string;
      };
    }
  | {
      seq: number;
      createdAt: string;
      type: "agent.tool";
      data: {
        toolCallId: string;
        title: string;
        kind: string;
        status: "pending" | "in_progress" | "completed" | "failed";
        locations: {
          path: string;
          line?: number;
        }[];
        content: (
          | {
              type: "text";
              text: string;
            }
          | {
              type: "diff";
              path: string;
              oldText: string | null;
              newText: string;
            }
        )[];
        input?: string;
      };
    }
  | {
      seq: number;
      createdAt: string;
      type: "agent.plan";
      data: {
        entries: {
          text: string;
          status: "pending" | "in_progress" | "completed";
        }[];
      };
    }
  | {
      seq: number;
      createdAt: string;
      type: "agent.usage";
      data: {
        inputTokens?: number;
        outputTokens?: number;
        totalTokens?: number;
        contextUsed?: number;
        contextSize?: number;
      };
    }
  | {
      seq: number;
      createdAt: string;
      type: "agent.permission";
      data: {
        title: string;
        decision: "allowed" | "denied";
        option: string;
      };
    }
  | {
      seq: number;
      createdAt: string;
      type: "model.usage";
      data: {
        provider: "anthropic" | "openai" | "google" | "compatible";
        model: string | null;
        inputTokens: number;
        outputTokens: number;
        cacheReadTokens: number;
        cacheWriteTokens: number;
        reasoningTokens: number;
        costUsd?: number | null;
      };
    }
  | {
      seq: number;
      createdAt: string;
      type: "sandbox.usage";
      data: {
        memoryBytes: number;
        memoryLimitBytes: number | null;
        cores: number;
      };
    }
  | {
      seq: number;
      createdAt: string;
      type: "egress.refused";
      data: {
        host: string;
        port: number;
        reason: "not allowed" | "private address" | "other name" | "no name" | "other protocol";
        named?: string;
      };
    }
  | {
      seq: number;
      createdAt: string;
      type: "agent.turn";
      data: {
        stopReason: string;
        durationMs: number;
      };
    }
  | {
      seq: number;
      createdAt: string;
      type: "workspace.commit";
      data: {
        repositoryId: string;
        sha: string;
        subject: string;
        by: "agent" | "offstage";
      };
    }
  | {
      seq: number;
      createdAt: string;
      type: "branch.pushed";
      data: {
        repositoryId: string;
        branch: string;
        sha: string;
      };
    }
  | {
      seq: number;
      createdAt: string;
      type: "pullRequest.opened";
      data: {
        repositoryId: string;
        number: number;
        url: string;
        created: boolean;
      };
    }
  | {
      seq: number;
      createdAt: string;
      type: "pullRequest.closed";
      data: {
        repositoryId: string;
        number: number;
        url: string;
        state: "merged" | "closed";
      };
    }
  | {
      seq: number;
      createdAt: string;
      type: "pullRequest.conflicted";
      data: {
        repositoryId: string;
        number: number;
        url: string;
      };
    };
export type SessionTranscriptAnswer = string;
export type AutomationTriggerRotateAnswer =
  | {
      type: "api";
      id: string;
      enabled: boolean;
      /**
       * CEL over `event`, `trigger` and `repository`; empty: always.
       */
      condition: string;
      concurrency: {
        /**
         * CEL that gives a string: runs with the same one do not run at once.
         */
        key: string;
        policy: "skip" | "queue" | "cancelOlder";
      } | null;
      /**
       * Waits until so long nothing came, at most ten times as long; the newest runs.
       */
      debounceSeconds: number | null;
      /**
       * Runs that it may start within an hour.
       */
      maxPerHour: number | null;
      /**
       * Why its condition or its key could not be evaluated last.
       */
      problem: string | null;
    }
  | {
      type: "schedule";
      id: string;
      enabled: boolean;
      /**
       * CEL over `event`, `trigger` and `repository`; empty: always.
       */
      condition: string;
      concurrency: {
        /**
         * CEL that gives a string: runs with the same one do not run at once.
         */
        key: string;
        policy: "skip" | "queue" | "cancelOlder";
      } | null;
      /**
       * Waits until so long nothing came, at most ten times as long; the newest runs.
       */
      debounceSeconds: number | null;
      /**
       * Runs that it may start within an hour.
       */
      maxPerHour: number | null;
      /**
       * Why its condition or its key could not be evaluated last.
       */
      problem: string | null;
      cron: string;
      timeZone: string;
      missed: "runOnce" | "skip";
      /**
       * Its next tick; null if it has none.
       */
      nextAt: string | null;
    }
  | {
      type: "webhook";
      id: string;
      enabled: boolean;
      /**
       * CEL over `event`, `trigger` and `repository`; empty: always.
       */
      condition: string;
      concurrency: {
        /**
         * CEL that gives a string: runs with the same one do not run at once.
         */
        key: string;
        policy: "skip" | "queue" | "cancelOlder";
      } | null;
      /**
       * Waits until so long nothing came, at most ten times as long; the newest runs.
       */
      debounceSeconds: number | null;
      /**
       * Runs that it may start within an hour.
       */
      maxPerHour: number | null;
      /**
       * Why its condition or its key could not be evaluated last.
       */
      problem: string | null;
      verify:
        | {
            type: "none";
          }
        | {
            type: "hmac";
            header: string;
            algorithm: "sha256" | "sha1" | "sha512";
            encoding: "hex" | "base64";
            prefix: string;
          }
        | {
            type: "standardWebhooks";
          };
      /**
       * idAndContent: the sender's id of the delivery, and the same body within a minute. id: the id alone, for senders that repeat bodies on purpose. Default idAndContent.
       */
      deduplicateBy: "idAndContent" | "id";
      /**
       * The address that its sender posts to.
       */
      url: string;
      /**
       * Shown once, when it is made.
       */
      secret?: string;
    }
  | {
      type: "forge";
      id: string;
      enabled: boolean;
      /**
       * CEL over `event`, `trigger` and `repository`; empty: always.
       */
      condition: string;
      concurrency: {
        /**
         * CEL that gives a string: runs with the same one do not run at once.
         */
        key: string;
        policy: "skip" | "queue" | "cancelOlder";
      } | null;
      /**
       * Waits until so long nothing came, at most ten times as long; the newest runs.
       */
      debounceSeconds: number | null;
      /**
       * Runs that it may start within an hour.
       */
      maxPerHour: number | null;
      /**
       * Why its condition or its key could not be evaluated last.
       */
      problem: string | null;
      connectionId: string | null;
      events: string[];
      repositories: string[];
      /**
       * subject: the result is a comment on the issue or pull request that the event is about. Default none.
       */
      reply: "none" | "subject";
      /**
       * pullRequest: the run goes on with the branch of the pull request that the event is about, if that is in the repository. Default newBranch.
       */
      pushTo: "newBranch" | "pullRequest";
    }
  | {
      type: "source";
      id: string;
      enabled: boolean;
      /**
       * CEL over `event`, `trigger` and `repository`; empty: always.
       */
      condition: string;
      concurrency: {
        /**
         * CEL that gives a string: runs with the same one do not run at once.
         */
        key: string;
        policy: "skip" | "queue" | "cancelOlder";
      } | null;
      /**
       * Waits until so long nothing came, at most ten times as long; the newest runs.
       */
      debounceSeconds: number | null;
      /**
       * Runs that it may start within an hour.
       */
      maxPerHour: number | null;
      /**
       * Why its condition or its key could not be evaluated last.
       */
      problem: string | null;
      source: "sentry" | "linear" | "jira" | "slack" | "pagerduty" | "cloudEvents";
      events: string[];
      /**
       * Whether answers go back to the thread or issue.
       */
      hasReplyToken: boolean;
      /**
       * The address that its sender posts to.
       */
      url: string;
      /**
       * Shown once, when it is made.
       */
      secret?: string;
    };
export type HookDeliverAnswer = string;
export type HookForgeAnswer = string;
export type LedgerReplayAnswer =
  | AutomationTriggerAnswer
  | {
      outcome: "accepted" | "duplicate" | "filtered";
      /**
       * The ledger's entry; of a duplicate, that of the first delivery.
       */
      ledgerId: string;
    };
export type LoginCreateBody =
  | {
      token: string;
    }
  | {
      key: string;
    };

export interface ErrorInput {
  error: string;
}
export interface Error {
  error: string;
}
export interface SessionCreateBody2 {
  /**
   * What the session should do.
   */
  prompt?: string;
  /**
   * Further detail, or an alternative to prompt.
   */
  description?: string;
  /**
   * Agent to use, written as <provider>:<model>.
   */
  agent?: string;
  /**
   * URLs of code repositories, at most 20.
   */
  repositories?: string[];
  /**
   * Ids of the organization's repositories.
   */
  codeRepoIds?: string[];
  /**
   * Branch against which the pull request is opened.
   */
  targetBranch?: string | null;
  /**
   * Branch name to use for the work.
   */
  branchName?: string | null;
  /**
   * How its pull requests are opened: as drafts, with labels, reviewers, assignees.
   */
  pullRequest?: {
    /**
     * Whether they are opened as drafts.
     */
    draft?: boolean;
    /**
     * Labels that they get.
     *
     * @maxItems 20
     */
    labels?:
      | []
      | [string]
      | [string, string]
      | [string, string, string]
      | [string, string, string, string]
      | [string, string, string, string, string]
      | [string, string, string, string, string, string]
      | [string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string, string, string, string]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ];
    /**
     * Who is asked for a review, by the forge's name; `<organization>/<team>` for a team where it has some.
     *
     * @maxItems 20
     */
    reviewers?:
      | []
      | [string]
      | [string, string]
      | [string, string, string]
      | [string, string, string, string]
      | [string, string, string, string, string]
      | [string, string, string, string, string, string]
      | [string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string, string, string, string]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ];
    /**
     * Who is assigned, by the forge's name.
     *
     * @maxItems 20
     */
    assignees?:
      | []
      | [string]
      | [string, string]
      | [string, string, string]
      | [string, string, string, string]
      | [string, string, string, string, string]
      | [string, string, string, string, string, string]
      | [string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string, string, string, string]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ];
  } | null;
  /**
   * Limit of what it spends on models, in US dollars; above the organization's, it is an admin's to set.
   */
  budgetUsd?: number | null;
  /**
   * What it is found by, beside its words.
   *
   * @maxItems 20
   */
  labels?:
    | []
    | [string]
    | [string, string]
    | [string, string, string]
    | [string, string, string, string]
    | [string, string, string, string, string]
    | [string, string, string, string, string, string]
    | [string, string, string, string, string, string, string]
    | [string, string, string, string, string, string, string, string]
    | [string, string, string, string, string, string, string, string, string]
    | [string, string, string, string, string, string, string, string, string, string]
    | [string, string, string, string, string, string, string, string, string, string, string]
    | [string, string, string, string, string, string, string, string, string, string, string, string]
    | [string, string, string, string, string, string, string, string, string, string, string, string, string]
    | [string, string, string, string, string, string, string, string, string, string, string, string, string, string]
    | [
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string
      ]
    | [
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string
      ]
    | [
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string
      ]
    | [
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string
      ]
    | [
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string
      ]
    | [
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string
      ];
  /**
   * Default true: queue the session at once.
   */
  queueRightAway?: boolean | null;
  /**
   * Open no pull request until the work on every repository is pushed; if one push is refused, open none. Default false: a repository whose push is refused holds back no other.
   */
  pullRequestsTogether?: boolean | null;
  [k: string]: unknown;
}
export interface SessionCreateAnswer {
  id: string;
  title: string;
  description: string;
  status: "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled";
  createdAt: string;
  updatedAt: string;
  organizationId: string;
  htmlUrl: string;
}
export interface SessionListQuery {
  /**
   * 1 to 100, default 20
   */
  limit?: number;
  /**
   * nextCursor of the previous page
   */
  cursor?: string;
  /**
   * May be given several times: any of them.
   */
  status?:
    | ("draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled")
    | []
    | ["draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled"]
    | [
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled",
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled"
      ]
    | [
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled",
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled",
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled"
      ]
    | [
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled",
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled",
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled",
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled"
      ]
    | [
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled",
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled",
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled",
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled",
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled"
      ]
    | [
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled",
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled",
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled",
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled",
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled",
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled"
      ]
    | [
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled",
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled",
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled",
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled",
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled",
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled",
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled"
      ];
  automationId?: string;
  repositoryId?: string;
  /**
   * Id of the user or key that asked; me: the caller.
   */
  requestedBy?: string | "me";
  /**
   * May be given several times: all of them.
   */
  label?:
    | string
    | []
    | [string]
    | [string, string]
    | [string, string, string]
    | [string, string, string, string]
    | [string, string, string, string, string]
    | [string, string, string, string, string, string]
    | [string, string, string, string, string, string, string]
    | [string, string, string, string, string, string, string, string]
    | [string, string, string, string, string, string, string, string, string]
    | [string, string, string, string, string, string, string, string, string, string]
    | [string, string, string, string, string, string, string, string, string, string, string]
    | [string, string, string, string, string, string, string, string, string, string, string, string]
    | [string, string, string, string, string, string, string, string, string, string, string, string, string]
    | [string, string, string, string, string, string, string, string, string, string, string, string, string, string]
    | [
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string
      ]
    | [
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string
      ]
    | [
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string
      ]
    | [
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string
      ]
    | [
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string
      ]
    | [
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string
      ];
  /**
   * Default false in a list, and all in a search.
   */
  archived?: "true" | "false" | "all";
  /**
   * Why they need a person, any of these; any: for whatever reason.
   */
  attention?:
    | ("budget" | "failure" | "conflict" | "review" | "any")
    | []
    | ["budget" | "failure" | "conflict" | "review" | "any"]
    | ["budget" | "failure" | "conflict" | "review" | "any", "budget" | "failure" | "conflict" | "review" | "any"]
    | [
        "budget" | "failure" | "conflict" | "review" | "any",
        "budget" | "failure" | "conflict" | "review" | "any",
        "budget" | "failure" | "conflict" | "review" | "any"
      ]
    | [
        "budget" | "failure" | "conflict" | "review" | "any",
        "budget" | "failure" | "conflict" | "review" | "any",
        "budget" | "failure" | "conflict" | "review" | "any",
        "budget" | "failure" | "conflict" | "review" | "any"
      ];
  /**
   * Only those that `unread` says of.
   */
  unread?: "true";
}
export interface SessionListAnswer {
  sessions: SessionGetAnswer[];
  nextCursor: string | null;
}
export interface SessionGetAnswer {
  id: string;
  title: string;
  description: string;
  status: "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled";
  createdAt: string;
  updatedAt: string;
  organizationId: string;
  htmlUrl: string;
  prompt: string | null;
  agent: string | null;
  targetBranch: string | null;
  branchName: string;
  priority: number;
  queuePosition: number | null;
  estimatedWaitSeconds: number | null;
  queuedAt: string | null;
  startedAt: string | null;
  finishedAt: string | null;
  failure: {
    code:
      | "agent_unavailable"
      | "agent_crashed"
      | "agent_stalled"
      | "turn_too_long"
      | "agent_refused"
      | "model_error"
      | "sandbox_unavailable"
      | "resources_exhausted"
      | "disk_full"
      | "secret_unavailable"
      | "secret_in_work"
      | "token_in_work"
      | "setup_failed"
      | "gate_failed"
      | "signing_failed"
      | "workspace_broken"
      | "repository_not_allowed"
      | "repository_not_found"
      | "repository_access_denied"
      | "repository_unreachable"
      | "target_branch_not_found"
      | "branch_protected"
      | "branch_diverged"
      | "push_rejected"
      | "pull_request_refused"
      | "forge_unavailable"
      | "object_store_unavailable"
      | "worker_lost"
      | "too_many_attempts"
      | "internal";
    reason: string;
    retryable: boolean;
    passing?: boolean;
    remedy: string;
  } | null;
  summary: string | null;
  requestedBy: {
    type: "user" | "key";
    id: string;
    name: string;
  } | null;
  automationId: string | null;
  jobId: string | null;
  sandboxed: boolean;
  budgetUsd: number | null;
  spentUsd: number;
  activity: string | null;
  waiting: {
    reason: "budget";
    text: string;
  } | null;
  retry: {
    at: string;
    reason: string;
    code:
      | "agent_unavailable"
      | "agent_crashed"
      | "agent_stalled"
      | "turn_too_long"
      | "agent_refused"
      | "model_error"
      | "sandbox_unavailable"
      | "resources_exhausted"
      | "disk_full"
      | "secret_unavailable"
      | "secret_in_work"
      | "token_in_work"
      | "setup_failed"
      | "gate_failed"
      | "signing_failed"
      | "workspace_broken"
      | "repository_not_allowed"
      | "repository_not_found"
      | "repository_access_denied"
      | "repository_unreachable"
      | "target_branch_not_found"
      | "branch_protected"
      | "branch_diverged"
      | "push_rejected"
      | "pull_request_refused"
      | "forge_unavailable"
      | "object_store_unavailable"
      | "worker_lost"
      | "too_many_attempts"
      | "internal";
    attempt: number;
  } | null;
  /**
   * How its pull requests are opened.
   */
  pullRequest: {
    /**
     * Whether they are opened as drafts.
     */
    draft: boolean;
    /**
     * Labels that they get.
     *
     * @maxItems 20
     */
    labels:
      | []
      | [string]
      | [string, string]
      | [string, string, string]
      | [string, string, string, string]
      | [string, string, string, string, string]
      | [string, string, string, string, string, string]
      | [string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string, string, string, string]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ];
    /**
     * Who is asked for a review, by the forge's name; `<organization>/<team>` for a team where it has some.
     *
     * @maxItems 20
     */
    reviewers:
      | []
      | [string]
      | [string, string]
      | [string, string, string]
      | [string, string, string, string]
      | [string, string, string, string, string]
      | [string, string, string, string, string, string]
      | [string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string, string, string, string]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ];
    /**
     * Who is assigned, by the forge's name.
     *
     * @maxItems 20
     */
    assignees:
      | []
      | [string]
      | [string, string]
      | [string, string, string]
      | [string, string, string, string]
      | [string, string, string, string, string]
      | [string, string, string, string, string, string]
      | [string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string, string, string, string]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ];
  } | null;
  /**
   * Whether it only runs the setups of its repositories: no agent, no pull request.
   */
  setupTrial: boolean;
  /**
   * Whether it is over, you asked for it, and you have not looked at it since.
   */
  unread: boolean;
  /**
   * In the order of their letters.
   */
  labels: string[];
  /**
   * null: it is in the usual list.
   */
  archivedAt: string | null;
  /**
   * Why it needs a person; empty: it does not.
   */
  attention: ("budget" | "failure" | "conflict" | "review")[];
  eventsRemovedThrough: number;
  repositories: {
    id: string;
    name: string;
    url: string;
  }[];
  pullRequestsTogether: boolean;
  pullRequests: {
    repositoryId: string;
    number: number;
    url: string;
    head: string;
    target: string;
    state: "open" | "merged" | "closed";
    /**
     * Whether it goes together with its target branch by itself, as the forge last said; null: not known yet.
     */
    mergeable: boolean | null;
    /**
     * How the checks of its newest commit ended, as the forge told; null: it told of none yet.
     */
    checks: ("passed" | "failed") | null;
    /**
     * What a review last said, as the forge told; null: none said either.
     */
    review: ("approved" | "changesRequested") | null;
  }[];
}
export interface SessionSearchQuery {
  /**
   * 1 to 100, default 20
   */
  limit?: number;
  /**
   * nextCursor of the previous page
   */
  cursor?: string;
  /**
   * May be given several times: any of them.
   */
  status?:
    | ("draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled")
    | []
    | ["draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled"]
    | [
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled",
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled"
      ]
    | [
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled",
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled",
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled"
      ]
    | [
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled",
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled",
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled",
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled"
      ]
    | [
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled",
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled",
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled",
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled",
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled"
      ]
    | [
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled",
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled",
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled",
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled",
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled",
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled"
      ]
    | [
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled",
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled",
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled",
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled",
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled",
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled",
        "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled"
      ];
  automationId?: string;
  repositoryId?: string;
  /**
   * Id of the user or key that asked; me: the caller.
   */
  requestedBy?: string | "me";
  /**
   * May be given several times: all of them.
   */
  label?:
    | string
    | []
    | [string]
    | [string, string]
    | [string, string, string]
    | [string, string, string, string]
    | [string, string, string, string, string]
    | [string, string, string, string, string, string]
    | [string, string, string, string, string, string, string]
    | [string, string, string, string, string, string, string, string]
    | [string, string, string, string, string, string, string, string, string]
    | [string, string, string, string, string, string, string, string, string, string]
    | [string, string, string, string, string, string, string, string, string, string, string]
    | [string, string, string, string, string, string, string, string, string, string, string, string]
    | [string, string, string, string, string, string, string, string, string, string, string, string, string]
    | [string, string, string, string, string, string, string, string, string, string, string, string, string, string]
    | [
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string
      ]
    | [
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string
      ]
    | [
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string
      ]
    | [
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string
      ]
    | [
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string
      ]
    | [
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string
      ];
  /**
   * Default false in a list, and all in a search.
   */
  archived?: "true" | "false" | "all";
  /**
   * Why they need a person, any of these; any: for whatever reason.
   */
  attention?:
    | ("budget" | "failure" | "conflict" | "review" | "any")
    | []
    | ["budget" | "failure" | "conflict" | "review" | "any"]
    | ["budget" | "failure" | "conflict" | "review" | "any", "budget" | "failure" | "conflict" | "review" | "any"]
    | [
        "budget" | "failure" | "conflict" | "review" | "any",
        "budget" | "failure" | "conflict" | "review" | "any",
        "budget" | "failure" | "conflict" | "review" | "any"
      ]
    | [
        "budget" | "failure" | "conflict" | "review" | "any",
        "budget" | "failure" | "conflict" | "review" | "any",
        "budget" | "failure" | "conflict" | "review" | "any",
        "budget" | "failure" | "conflict" | "review" | "any"
      ];
  /**
   * Only those that `unread` says of.
   */
  unread?: "true";
  q: string;
}
export interface SessionDeleteAnswer {}
export interface SessionMessageBody {
  /**
   * What to do next.
   */
  message: string;
}
export interface SessionMessagesBody {
  /**
   * What to do next.
   */
  message: string;
}
export interface SessionBudgetBody {
  /**
   * US dollars in total; null: the organization's budget.
   */
  budgetUsd: number | null;
}
export interface SessionEventsQuery {
  after?: number;
  limit?: number;
}
export interface SessionEventsAnswer {
  events: SessionEvent[];
  nextCursor: string | null;
}
export interface SessionDiffAnswer {
  repositories: {
    repositoryId: string | null;
    name: string;
    baseSha: string | null;
    headSha: string | null;
    patch: string;
    truncated: boolean;
  }[];
}
export interface LabelListQuery {
  /**
   * 1 to 100, default 20
   */
  limit?: number;
  /**
   * nextCursor of the previous page
   */
  cursor?: string;
  /**
   * What they begin with.
   */
  prefix?: string;
}
export interface LabelListAnswer {
  labels: string[];
  nextCursor: string | null;
}
export interface SessionLabelsBody {
  /**
   * All that it has from then on.
   *
   * @maxItems 20
   */
  labels?:
    | []
    | [string]
    | [string, string]
    | [string, string, string]
    | [string, string, string, string]
    | [string, string, string, string, string]
    | [string, string, string, string, string, string]
    | [string, string, string, string, string, string, string]
    | [string, string, string, string, string, string, string, string]
    | [string, string, string, string, string, string, string, string, string]
    | [string, string, string, string, string, string, string, string, string, string]
    | [string, string, string, string, string, string, string, string, string, string, string]
    | [string, string, string, string, string, string, string, string, string, string, string, string]
    | [string, string, string, string, string, string, string, string, string, string, string, string, string]
    | [string, string, string, string, string, string, string, string, string, string, string, string, string, string]
    | [
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string
      ]
    | [
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string
      ]
    | [
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string
      ]
    | [
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string
      ]
    | [
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string
      ]
    | [
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string
      ];
  /**
   * Instead: those that it gets.
   *
   * @maxItems 20
   */
  add?:
    | []
    | [string]
    | [string, string]
    | [string, string, string]
    | [string, string, string, string]
    | [string, string, string, string, string]
    | [string, string, string, string, string, string]
    | [string, string, string, string, string, string, string]
    | [string, string, string, string, string, string, string, string]
    | [string, string, string, string, string, string, string, string, string]
    | [string, string, string, string, string, string, string, string, string, string]
    | [string, string, string, string, string, string, string, string, string, string, string]
    | [string, string, string, string, string, string, string, string, string, string, string, string]
    | [string, string, string, string, string, string, string, string, string, string, string, string, string]
    | [string, string, string, string, string, string, string, string, string, string, string, string, string, string]
    | [
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string
      ]
    | [
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string
      ]
    | [
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string
      ]
    | [
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string
      ]
    | [
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string
      ]
    | [
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string
      ];
  /**
   * And those that it loses.
   *
   * @maxItems 20
   */
  remove?:
    | []
    | [string]
    | [string, string]
    | [string, string, string]
    | [string, string, string, string]
    | [string, string, string, string, string]
    | [string, string, string, string, string, string]
    | [string, string, string, string, string, string, string]
    | [string, string, string, string, string, string, string, string]
    | [string, string, string, string, string, string, string, string, string]
    | [string, string, string, string, string, string, string, string, string, string]
    | [string, string, string, string, string, string, string, string, string, string, string]
    | [string, string, string, string, string, string, string, string, string, string, string, string]
    | [string, string, string, string, string, string, string, string, string, string, string, string, string]
    | [string, string, string, string, string, string, string, string, string, string, string, string, string, string]
    | [
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string
      ]
    | [
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string
      ]
    | [
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string
      ]
    | [
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string
      ]
    | [
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string
      ]
    | [
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string
      ];
}
export interface SessionMessageListQuery {
  /**
   * 1 to 100, default 20
   */
  limit?: number;
  /**
   * nextCursor of the previous page
   */
  cursor?: string;
}
export interface SessionMessageListAnswer {
  messages: {
    id: string;
    text: string;
    status: "pending" | "running" | "done" | "withdrawn";
    createdAt: string;
  }[];
  nextCursor: string | null;
}
export interface SessionShareCreateBody {
  /**
   * Days for which the link shows the session; default 7.
   */
  expiresInDays?: number;
}
export interface SessionShareCreateAnswer {
  id: string;
  sessionId: string;
  createdAt: string;
  expiresAt: string;
  revokedAt: string | null;
  /**
   * To the minute.
   */
  lastUsedAt: string | null;
  /**
   * The person who made it; null: nobody who is known by name.
   */
  createdBy: {
    id: string;
    name: string;
  } | null;
  /**
   * The page that shows the session. What follows the # is the secret.
   */
  url: string;
}
export interface SessionShareListAnswer {
  shares: SessionShareRevokeAnswer[];
  nextCursor: string | null;
}
export interface SessionShareRevokeAnswer {
  id: string;
  sessionId: string;
  createdAt: string;
  expiresAt: string;
  revokedAt: string | null;
  /**
   * To the minute.
   */
  lastUsedAt: string | null;
  /**
   * The person who made it; null: nobody who is known by name.
   */
  createdBy: {
    id: string;
    name: string;
  } | null;
}
export interface ShareListAnswer {
  shares: {
    id: string;
    sessionId: string;
    createdAt: string;
    expiresAt: string;
    revokedAt: string | null;
    /**
     * To the minute.
     */
    lastUsedAt: string | null;
    /**
     * The person who made it; null: nobody who is known by name.
     */
    createdBy: {
      id: string;
      name: string;
    } | null;
    sessionTitle: string;
  }[];
  nextCursor: string | null;
}
export interface SessionPatchQuery {
  /**
   * Only the changes of this one, from its own root.
   */
  repositoryId?: string;
}
export interface SessionTranscriptQuery {
  /**
   * json: the session and the entries of its transcript, with nothing cut.
   */
  format?: "markdown" | "json";
}
export interface SessionFileListQuery {
  /**
   * Path from the workspace's root, which has a folder for each repository.
   */
  path?: string;
  /**
   * 1 to 1000, default 200
   */
  limit?: number;
  /**
   * nextCursor of the previous page
   */
  cursor?: string;
}
export interface SessionFileListAnswer {
  path: string;
  /**
   * Null at the root of the workspace, if it has the repositories.
   */
  from: ("checkpoint" | "work" | "pushed" | "start") | null;
  /**
   * Folders first, each by name.
   */
  entries: {
    /**
     * What is no text in it is replaced.
     */
    name: string;
    /**
     * From the workspace's root; null: it can't be asked for, for its name.
     */
    path: string | null;
    type: "folder" | "file" | "link" | "submodule" | "other";
    /**
     * Of a file.
     */
    bytes: number | null;
    /**
     * What became of it, or of something in a folder, since the commit that the session began on.
     */
    change: ("added" | "changed") | null;
  }[];
  /**
   * False if the folder has more than the 50,000 entries that are looked at.
   */
  complete: boolean;
  nextCursor: string | null;
}
export interface SessionFileReadQuery {
  /**
   * Path from the workspace's root, which has a folder for each repository.
   */
  path?: string;
  /**
   * nextOffset of the part before; default 0
   */
  offset?: number;
  /**
   * Most characters, 1 to 500000, default 200000
   */
  limit?: number;
}
export interface SessionFileReadAnswer {
  path: string;
  /**
   * Of when they are: of the last checkpoint while the agent works, of the work as it was last taken out of its sandbox, as it was pushed, or of the commit that the session began on.
   */
  from: "checkpoint" | "work" | "pushed" | "start";
  type: "file" | "link";
  bytes: number;
  /**
   * With secrets replaced by [secret]; where a link leads; null: the file is no text in UTF-8.
   */
  text: string | null;
  offset: number;
  /**
   * Where the text goes on; null: that was its end.
   */
  nextOffset: number | null;
  /**
   * False of a file of more than 1 MiB, of which only so much can be read.
   */
  complete: boolean;
}
export interface SessionAnswerListAnswer {
  answers: {
    id: string;
    sessionId: string;
    kind: "comment" | "reply" | "resolution" | "reaction" | "status" | "settings" | "service";
    service: ("slack" | "linear") | null;
    repositoryId: string | null;
    /**
     * What is talked about on the forge; null for a commit's status and a service.
     */
    subject: {
      kind: "issue" | "pullRequest";
      number: number;
    } | null;
    /**
     * Of a reaction its name, of a status its name and description, of settings what is set, of a resolution nothing.
     */
    text: string;
    status: "pending" | "sent" | "refused" | "dead";
    attempts: number;
    nextAttemptAt: string | null;
    /**
     * Where it is, if the forge or service says so.
     */
    url: string | null;
    /**
     * Why it was refused or given up, or is not there yet.
     */
    problem: string | null;
    createdAt: string;
    updatedAt: string;
  }[];
  nextCursor: string | null;
}
export interface AutomationCreateBody {
  name: string;
  macro: string;
  /**
   * A Liquid template; `event` is the trigger's body.
   */
  instructions: string;
  /**
   * A Liquid template of its sessions' titles; null: the first line of the rendered instructions.
   */
  title?: string | null;
  /**
   * A script that runs in the sandbox before the agent: a code other than 0 ends the run as filtered; what it prints is context. null: there is none.
   */
  gate?: string | null;
  agent?: string | null;
  codeRepoIds?: string[];
  repositories?: string[];
  targetBranch?: string | null;
  /**
   * 1 most urgent, 9 least; default 5.
   */
  priority?: number;
  paused?: boolean;
  /**
   * What one run may spend on models; never more than the organization lets a run.
   */
  budgetUsd?: number | null;
  /**
   * So many failed runs in a row pause it; 0 or null: any number may fail. Default 3.
   */
  failuresBeforePause?: number | null;
  /**
   * Each run has a session for each repository, at most 100, instead of one with all. Default false.
   */
  fanOut?: boolean;
  /**
   * Open no pull request until the work on every repository is pushed; if one push is refused, open none. Default false.
   */
  pullRequestsTogether?: boolean;
  /**
   * How often it is expected to fire: if it does not, it raises an alert. Schedules need none for that.
   */
  expect?: {
    /**
     * Runs that have their session.
     */
    atLeast: number;
    /**
     * In any so many hours, at most 31 days.
     */
    everyHours: number;
  } | null;
  /**
   * How the pull requests of its runs are opened: as drafts, with labels, reviewers, assignees.
   */
  pullRequest?: {
    /**
     * Whether they are opened as drafts.
     */
    draft?: boolean;
    /**
     * Labels that they get.
     *
     * @maxItems 20
     */
    labels?:
      | []
      | [string]
      | [string, string]
      | [string, string, string]
      | [string, string, string, string]
      | [string, string, string, string, string]
      | [string, string, string, string, string, string]
      | [string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string, string, string, string]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ];
    /**
     * Who is asked for a review, by the forge's name; `<organization>/<team>` for a team where it has some.
     *
     * @maxItems 20
     */
    reviewers?:
      | []
      | [string]
      | [string, string]
      | [string, string, string]
      | [string, string, string, string]
      | [string, string, string, string, string]
      | [string, string, string, string, string, string]
      | [string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string, string, string, string]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ];
    /**
     * Who is assigned, by the forge's name.
     *
     * @maxItems 20
     */
    assignees?:
      | []
      | [string]
      | [string, string]
      | [string, string, string]
      | [string, string, string, string]
      | [string, string, string, string, string]
      | [string, string, string, string, string, string]
      | [string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string, string, string, string]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ];
  } | null;
  /**
   * What starts its runs, whole: triggers that are not in the list are removed. That of the API is always there.
   *
   * @maxItems 1000
   */
  triggers?: (
    | {
        type: "api";
        /**
         * Of a trigger that the automation has already; omitted: a new one.
         */
        id?: string;
        enabled?: boolean;
        /**
         * CEL over `event`, `trigger` and `repository`; empty: always.
         */
        condition?: string;
        concurrency?: {
          /**
           * CEL that gives a string: runs with the same one do not run at once.
           */
          key: string;
          policy: "skip" | "queue" | "cancelOlder";
        } | null;
        /**
         * Waits until so long nothing came, at most ten times as long; the newest runs.
         */
        debounceSeconds?: number | null;
        /**
         * Runs that it may start within an hour.
         */
        maxPerHour?: number | null;
      }
    | {
        type: "schedule";
        /**
         * Of a trigger that the automation has already; omitted: a new one.
         */
        id?: string;
        enabled?: boolean;
        /**
         * CEL over `event`, `trigger` and `repository`; empty: always.
         */
        condition?: string;
        concurrency?: {
          /**
           * CEL that gives a string: runs with the same one do not run at once.
           */
          key: string;
          policy: "skip" | "queue" | "cancelOlder";
        } | null;
        /**
         * Waits until so long nothing came, at most ten times as long; the newest runs.
         */
        debounceSeconds?: number | null;
        /**
         * Runs that it may start within an hour.
         */
        maxPerHour?: number | null;
        cron: string;
        timeZone?: string;
        missed?: "runOnce" | "skip";
      }
    | {
        type: "webhook";
        /**
         * Of a trigger that the automation has already; omitted: a new one.
         */
        id?: string;
        enabled?: boolean;
        /**
         * CEL over `event`, `trigger` and `repository`; empty: always.
         */
        condition?: string;
        concurrency?: {
          /**
           * CEL that gives a string: runs with the same one do not run at once.
           */
          key: string;
          policy: "skip" | "queue" | "cancelOlder";
        } | null;
        /**
         * Waits until so long nothing came, at most ten times as long; the newest runs.
         */
        debounceSeconds?: number | null;
        /**
         * Runs that it may start within an hour.
         */
        maxPerHour?: number | null;
        verify?:
          | {
              type: "none";
            }
          | {
              type: "hmac";
              header: string;
              algorithm?: "sha256" | "sha1" | "sha512";
              encoding?: "hex" | "base64";
              prefix?: string;
            }
          | {
              type: "standardWebhooks";
            };
        /**
         * idAndContent: the sender's id of the delivery, and the same body within a minute. id: the id alone, for senders that repeat bodies on purpose. Default idAndContent.
         */
        deduplicateBy?: "idAndContent" | "id";
        /**
         * The sender's own; omitted: one is made, and shown once.
         */
        secret?: string;
      }
    | {
        type: "forge";
        /**
         * Of a trigger that the automation has already; omitted: a new one.
         */
        id?: string;
        enabled?: boolean;
        /**
         * CEL over `event`, `trigger` and `repository`; empty: always.
         */
        condition?: string;
        concurrency?: {
          /**
           * CEL that gives a string: runs with the same one do not run at once.
           */
          key: string;
          policy: "skip" | "queue" | "cancelOlder";
        } | null;
        /**
         * Waits until so long nothing came, at most ten times as long; the newest runs.
         */
        debounceSeconds?: number | null;
        /**
         * Runs that it may start within an hour.
         */
        maxPerHour?: number | null;
        connectionId?: string | null;
        /**
         * @minItems 1
         */
        events: [
          (
            | "issue.opened"
            | "issue.labeled"
            | "issue.assigned"
            | "issue.commented"
            | "issue.closed"
            | "pullRequest.opened"
            | "pullRequest.updated"
            | "pullRequest.labeled"
            | "pullRequest.reviewRequested"
            | "pullRequest.reviewSubmitted"
            | "pullRequest.reviewDismissed"
            | "pullRequest.commented"
            | "pullRequest.merged"
            | "pullRequest.closed"
            | "push"
            | "checks.failed"
            | "checks.passed"
            | "release.published"
            | "session.completed"
            | "session.failed"
            | "session.waiting"
            | "pullRequest.openedByOffstage"
            | "pullRequest.conflicted"
          ),
          ...(
            | "issue.opened"
            | "issue.labeled"
            | "issue.assigned"
            | "issue.commented"
            | "issue.closed"
            | "pullRequest.opened"
            | "pullRequest.updated"
            | "pullRequest.labeled"
            | "pullRequest.reviewRequested"
            | "pullRequest.reviewSubmitted"
            | "pullRequest.reviewDismissed"
            | "pullRequest.commented"
            | "pullRequest.merged"
            | "pullRequest.closed"
            | "push"
            | "checks.failed"
            | "checks.passed"
            | "release.published"
            | "session.completed"
            | "session.failed"
            | "session.waiting"
            | "pullRequest.openedByOffstage"
            | "pullRequest.conflicted"
          )[]
        ];
        /**
         * @maxItems 100
         */
        repositories?: string[];
        /**
         * subject: the result is a comment on the issue or pull request that the event is about. Default none.
         */
        reply?: "none" | "subject";
        /**
         * pullRequest: the run goes on with the branch of the pull request that the event is about, if that is in the repository. Default newBranch.
         */
        pushTo?: "newBranch" | "pullRequest";
      }
    | {
        type: "source";
        /**
         * Of a trigger that the automation has already; omitted: a new one.
         */
        id?: string;
        enabled?: boolean;
        /**
         * CEL over `event`, `trigger` and `repository`; empty: always.
         */
        condition?: string;
        concurrency?: {
          /**
           * CEL that gives a string: runs with the same one do not run at once.
           */
          key: string;
          policy: "skip" | "queue" | "cancelOlder";
        } | null;
        /**
         * Waits until so long nothing came, at most ten times as long; the newest runs.
         */
        debounceSeconds?: number | null;
        /**
         * Runs that it may start within an hour.
         */
        maxPerHour?: number | null;
        source: "sentry" | "linear" | "jira" | "slack" | "pagerduty" | "cloudEvents";
        /**
         * Empty: all.
         *
         * @maxItems 50
         */
        events?: string[];
        /**
         * The sender's own; omitted: one is made, and shown once.
         */
        secret?: string;
        /**
         * Of slack and linear: with it the thread or issue gets a link at the start and the result at the end. Omitted: the one that it has; empty: none. Never shown.
         */
        replyToken?: string;
      }
  )[];
}
export interface AutomationListAnswer {
  automations: AutomationGetAnswer[];
  nextCursor: string | null;
}
export interface AutomationGetAnswer {
  id: string;
  organizationId: string;
  name: string;
  macro: string;
  instructions: string;
  title: string | null;
  gate: string | null;
  agent: string | null;
  repositories: {
    id: string;
    name: string;
    url: string;
  }[];
  targetBranch: string | null;
  priority: number;
  paused: boolean;
  pausedReason: string | null;
  failuresBeforePause: number | null;
  /**
   * Runs that failed since one was completed, or since somebody resumed it.
   */
  failedInARow: number;
  fanOut: boolean;
  pullRequestsTogether: boolean;
  expect: {
    /**
     * Runs that have their session.
     */
    atLeast: number;
    /**
     * In any so many hours, at most 31 days.
     */
    everyHours: number;
  } | null;
  /**
   * It was expected to fire and did not; null: nothing is overdue.
   */
  alert: {
    since: string;
    reason: string;
  } | null;
  budgetUsd: number | null;
  pullRequest: {
    /**
     * Whether they are opened as drafts.
     */
    draft: boolean;
    /**
     * Labels that they get.
     *
     * @maxItems 20
     */
    labels:
      | []
      | [string]
      | [string, string]
      | [string, string, string]
      | [string, string, string, string]
      | [string, string, string, string, string]
      | [string, string, string, string, string, string]
      | [string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string, string, string, string]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ];
    /**
     * Who is asked for a review, by the forge's name; `<organization>/<team>` for a team where it has some.
     *
     * @maxItems 20
     */
    reviewers:
      | []
      | [string]
      | [string, string]
      | [string, string, string]
      | [string, string, string, string]
      | [string, string, string, string, string]
      | [string, string, string, string, string, string]
      | [string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string, string, string, string]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ];
    /**
     * Who is assigned, by the forge's name.
     *
     * @maxItems 20
     */
    assignees:
      | []
      | [string]
      | [string, string]
      | [string, string, string]
      | [string, string, string, string]
      | [string, string, string, string, string]
      | [string, string, string, string, string, string]
      | [string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string, string, string, string]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ];
  } | null;
  triggers: AutomationTriggerRotateAnswer[];
  /**
   * The file of a repository that it is kept in, in which alone it can be changed.
   */
  file: {
    repositoryId: string;
    path: string;
    /**
     * Its page on the forge, if there is one.
     */
    url: string | null;
    /**
     * Why its newest version does not count.
     */
    problem: string | null;
  } | null;
  createdAt: string;
  updatedAt: string;
}
export interface AutomationUpdateBody {
  name?: string;
  macro?: string;
  /**
   * A Liquid template; `event` is the trigger's body.
   */
  instructions?: string;
  /**
   * A Liquid template of its sessions' titles; null: the first line of the rendered instructions.
   */
  title?: string | null;
  /**
   * A script that runs in the sandbox before the agent: a code other than 0 ends the run as filtered; what it prints is context. null: there is none.
   */
  gate?: string | null;
  agent?: string | null;
  codeRepoIds?: string[];
  repositories?: string[];
  targetBranch?: string | null;
  /**
   * 1 most urgent, 9 least; default 5.
   */
  priority?: number;
  paused?: boolean;
  /**
   * What one run may spend on models; never more than the organization lets a run.
   */
  budgetUsd?: number | null;
  /**
   * So many failed runs in a row pause it; 0 or null: any number may fail. Default 3.
   */
  failuresBeforePause?: number | null;
  /**
   * Each run has a session for each repository, at most 100, instead of one with all. Default false.
   */
  fanOut?: boolean;
  /**
   * Open no pull request until the work on every repository is pushed; if one push is refused, open none. Default false.
   */
  pullRequestsTogether?: boolean;
  /**
   * How often it is expected to fire: if it does not, it raises an alert. Schedules need none for that.
   */
  expect?: {
    /**
     * Runs that have their session.
     */
    atLeast: number;
    /**
     * In any so many hours, at most 31 days.
     */
    everyHours: number;
  } | null;
  /**
   * How the pull requests of its runs are opened: as drafts, with labels, reviewers, assignees.
   */
  pullRequest?: {
    /**
     * Whether they are opened as drafts.
     */
    draft?: boolean;
    /**
     * Labels that they get.
     *
     * @maxItems 20
     */
    labels?:
      | []
      | [string]
      | [string, string]
      | [string, string, string]
      | [string, string, string, string]
      | [string, string, string, string, string]
      | [string, string, string, string, string, string]
      | [string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string, string, string, string]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ];
    /**
     * Who is asked for a review, by the forge's name; `<organization>/<team>` for a team where it has some.
     *
     * @maxItems 20
     */
    reviewers?:
      | []
      | [string]
      | [string, string]
      | [string, string, string]
      | [string, string, string, string]
      | [string, string, string, string, string]
      | [string, string, string, string, string, string]
      | [string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string, string, string, string]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ];
    /**
     * Who is assigned, by the forge's name.
     *
     * @maxItems 20
     */
    assignees?:
      | []
      | [string]
      | [string, string]
      | [string, string, string]
      | [string, string, string, string]
      | [string, string, string, string, string]
      | [string, string, string, string, string, string]
      | [string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string, string, string]
      | [string, string, string, string, string, string, string, string, string, string, string, string, string, string]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ]
      | [
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string,
          string
        ];
  } | null;
  /**
   * What starts its runs, whole: triggers that are not in the list are removed. That of the API is always there.
   *
   * @maxItems 1000
   */
  triggers?: (
    | {
        type: "api";
        /**
         * Of a trigger that the automation has already; omitted: a new one.
         */
        id?: string;
        enabled?: boolean;
        /**
         * CEL over `event`, `trigger` and `repository`; empty: always.
         */
        condition?: string;
        concurrency?: {
          /**
           * CEL that gives a string: runs with the same one do not run at once.
           */
          key: string;
          policy: "skip" | "queue" | "cancelOlder";
        } | null;
        /**
         * Waits until so long nothing came, at most ten times as long; the newest runs.
         */
        debounceSeconds?: number | null;
        /**
         * Runs that it may start within an hour.
         */
        maxPerHour?: number | null;
      }
    | {
        type: "schedule";
        /**
         * Of a trigger that the automation has already; omitted: a new one.
         */
        id?: string;
        enabled?: boolean;
        /**
         * CEL over `event`, `trigger` and `repository`; empty: always.
         */
        condition?: string;
        concurrency?: {
          /**
           * CEL that gives a string: runs with the same one do not run at once.
           */
          key: string;
          policy: "skip" | "queue" | "cancelOlder";
        } | null;
        /**
         * Waits until so long nothing came, at most ten times as long; the newest runs.
         */
        debounceSeconds?: number | null;
        /**
         * Runs that it may start within an hour.
         */
        maxPerHour?: number | null;
        cron: string;
        timeZone?: string;
        missed?: "runOnce" | "skip";
      }
    | {
        type: "webhook";
        /**
         * Of a trigger that the automation has already; omitted: a new one.
         */
        id?: string;
        enabled?: boolean;
        /**
         * CEL over `event`, `trigger` and `repository`; empty: always.
         */
        condition?: string;
        concurrency?: {
          /**
           * CEL that gives a string: runs with the same one do not run at once.
           */
          key: string;
          policy: "skip" | "queue" | "cancelOlder";
        } | null;
        /**
         * Waits until so long nothing came, at most ten times as long; the newest runs.
         */
        debounceSeconds?: number | null;
        /**
         * Runs that it may start within an hour.
         */
        maxPerHour?: number | null;
        verify?:
          | {
              type: "none";
            }
          | {
              type: "hmac";
              header: string;
              algorithm?: "sha256" | "sha1" | "sha512";
              encoding?: "hex" | "base64";
              prefix?: string;
            }
          | {
              type: "standardWebhooks";
            };
        /**
         * idAndContent: the sender's id of the delivery, and the same body within a minute. id: the id alone, for senders that repeat bodies on purpose. Default idAndContent.
         */
        deduplicateBy?: "idAndContent" | "id";
        /**
         * The sender's own; omitted: one is made, and shown once.
         */
        secret?: string;
      }
    | {
        type: "forge";
        /**
         * Of a trigger that the automation has already; omitted: a new one.
         */
        id?: string;
        enabled?: boolean;
        /**
         * CEL over `event`, `trigger` and `repository`; empty: always.
         */
        condition?: string;
        concurrency?: {
          /**
           * CEL that gives a string: runs with the same one do not run at once.
           */
          key: string;
          policy: "skip" | "queue" | "cancelOlder";
        } | null;
        /**
         * Waits until so long nothing came, at most ten times as long; the newest runs.
         */
        debounceSeconds?: number | null;
        /**
         * Runs that it may start within an hour.
         */
        maxPerHour?: number | null;
        connectionId?: string | null;
        /**
         * @minItems 1
         */
        events: [
          (
            | "issue.opened"
            | "issue.labeled"
            | "issue.assigned"
            | "issue.commented"
            | "issue.closed"
            | "pullRequest.opened"
            | "pullRequest.updated"
            | "pullRequest.labeled"
            | "pullRequest.reviewRequested"
            | "pullRequest.reviewSubmitted"
            | "pullRequest.reviewDismissed"
            | "pullRequest.commented"
            | "pullRequest.merged"
            | "pullRequest.closed"
            | "push"
            | "checks.failed"
            | "checks.passed"
            | "release.published"
            | "session.completed"
            | "session.failed"
            | "session.waiting"
            | "pullRequest.openedByOffstage"
            | "pullRequest.conflicted"
          ),
          ...(
            | "issue.opened"
            | "issue.labeled"
            | "issue.assigned"
            | "issue.commented"
            | "issue.closed"
            | "pullRequest.opened"
            | "pullRequest.updated"
            | "pullRequest.labeled"
            | "pullRequest.reviewRequested"
            | "pullRequest.reviewSubmitted"
            | "pullRequest.reviewDismissed"
            | "pullRequest.commented"
            | "pullRequest.merged"
            | "pullRequest.closed"
            | "push"
            | "checks.failed"
            | "checks.passed"
            | "release.published"
            | "session.completed"
            | "session.failed"
            | "session.waiting"
            | "pullRequest.openedByOffstage"
            | "pullRequest.conflicted"
          )[]
        ];
        /**
         * @maxItems 100
         */
        repositories?: string[];
        /**
         * subject: the result is a comment on the issue or pull request that the event is about. Default none.
         */
        reply?: "none" | "subject";
        /**
         * pullRequest: the run goes on with the branch of the pull request that the event is about, if that is in the repository. Default newBranch.
         */
        pushTo?: "newBranch" | "pullRequest";
      }
    | {
        type: "source";
        /**
         * Of a trigger that the automation has already; omitted: a new one.
         */
        id?: string;
        enabled?: boolean;
        /**
         * CEL over `event`, `trigger` and `repository`; empty: always.
         */
        condition?: string;
        concurrency?: {
          /**
           * CEL that gives a string: runs with the same one do not run at once.
           */
          key: string;
          policy: "skip" | "queue" | "cancelOlder";
        } | null;
        /**
         * Waits until so long nothing came, at most ten times as long; the newest runs.
         */
        debounceSeconds?: number | null;
        /**
         * Runs that it may start within an hour.
         */
        maxPerHour?: number | null;
        source: "sentry" | "linear" | "jira" | "slack" | "pagerduty" | "cloudEvents";
        /**
         * Empty: all.
         *
         * @maxItems 50
         */
        events?: string[];
        /**
         * The sender's own; omitted: one is made, and shown once.
         */
        secret?: string;
        /**
         * Of slack and linear: with it the thread or issue gets a link at the start and the result at the end. Omitted: the one that it has; empty: none. Never shown.
         */
        replyToken?: string;
      }
  )[];
}
export interface AutomationPreviewBody {
  /**
   * A sample payload.
   */
  event?: {
    [k: string]: unknown;
  };
}
export interface AutomationPreviewAnswer {
  prompt: string;
  title: string;
}
export interface AutomationRunsAnswer {
  runs: JobGetAnswer[];
  nextCursor: string | null;
}
export interface JobGetAnswer {
  id: string;
  task: "RunWorkflow" | "RunAgent";
  status: "pending" | "running" | "completed" | "failed" | "cancelled";
  priority: number;
  createdAt: string;
  updatedAt: string;
  automationId: string | null;
  sessionId: string | null;
  sessionHtmlUrl: string | null;
  error: string | null;
  /**
   * The state of the run as a whole, which follows from those of its sessions. Null: of a node of the version before.
   */
  runStatus: ("pending" | "running" | "waiting" | "completed" | "failed" | "cancelled") | null;
  /**
   * All sessions of the run: of an automation that fans out one for each repository.
   */
  sessions: {
    id: string;
    status: "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled";
    repositories: {
      id: string;
      name: string;
      url: string;
    }[];
    htmlUrl: string;
  }[];
}
export interface AutomationPreviewDraftBody {
  name?: string;
  /**
   * A Liquid template; `event` is the trigger's body.
   */
  instructions?: string;
  /**
   * A Liquid template of its sessions' titles; null: the first line of the rendered instructions.
   */
  title?: string | null;
  /**
   * What starts its runs, whole: triggers that are not in the list are removed. That of the API is always there.
   *
   * @maxItems 1000
   */
  triggers?: (
    | {
        type: "api";
        /**
         * Of a trigger that the automation has already; omitted: a new one.
         */
        id?: string;
        enabled?: boolean;
        /**
         * CEL over `event`, `trigger` and `repository`; empty: always.
         */
        condition?: string;
        concurrency?: {
          /**
           * CEL that gives a string: runs with the same one do not run at once.
           */
          key: string;
          policy: "skip" | "queue" | "cancelOlder";
        } | null;
        /**
         * Waits until so long nothing came, at most ten times as long; the newest runs.
         */
        debounceSeconds?: number | null;
        /**
         * Runs that it may start within an hour.
         */
        maxPerHour?: number | null;
      }
    | {
        type: "schedule";
        /**
         * Of a trigger that the automation has already; omitted: a new one.
         */
        id?: string;
        enabled?: boolean;
        /**
         * CEL over `event`, `trigger` and `repository`; empty: always.
         */
        condition?: string;
        concurrency?: {
          /**
           * CEL that gives a string: runs with the same one do not run at once.
           */
          key: string;
          policy: "skip" | "queue" | "cancelOlder";
        } | null;
        /**
         * Waits until so long nothing came, at most ten times as long; the newest runs.
         */
        debounceSeconds?: number | null;
        /**
         * Runs that it may start within an hour.
         */
        maxPerHour?: number | null;
        cron: string;
        timeZone?: string;
        missed?: "runOnce" | "skip";
      }
    | {
        type: "webhook";
        /**
         * Of a trigger that the automation has already; omitted: a new one.
         */
        id?: string;
        enabled?: boolean;
        /**
         * CEL over `event`, `trigger` and `repository`; empty: always.
         */
        condition?: string;
        concurrency?: {
          /**
           * CEL that gives a string: runs with the same one do not run at once.
           */
          key: string;
          policy: "skip" | "queue" | "cancelOlder";
        } | null;
        /**
         * Waits until so long nothing came, at most ten times as long; the newest runs.
         */
        debounceSeconds?: number | null;
        /**
         * Runs that it may start within an hour.
         */
        maxPerHour?: number | null;
        verify?:
          | {
              type: "none";
            }
          | {
              type: "hmac";
              header: string;
              algorithm?: "sha256" | "sha1" | "sha512";
              encoding?: "hex" | "base64";
              prefix?: string;
            }
          | {
              type: "standardWebhooks";
            };
        /**
         * idAndContent: the sender's id of the delivery, and the same body within a minute. id: the id alone, for senders that repeat bodies on purpose. Default idAndContent.
         */
        deduplicateBy?: "idAndContent" | "id";
        /**
         * The sender's own; omitted: one is made, and shown once.
         */
        secret?: string;
      }
    | {
        type: "forge";
        /**
         * Of a trigger that the automation has already; omitted: a new one.
         */
        id?: string;
        enabled?: boolean;
        /**
         * CEL over `event`, `trigger` and `repository`; empty: always.
         */
        condition?: string;
        concurrency?: {
          /**
           * CEL that gives a string: runs with the same one do not run at once.
           */
          key: string;
          policy: "skip" | "queue" | "cancelOlder";
        } | null;
        /**
         * Waits until so long nothing came, at most ten times as long; the newest runs.
         */
        debounceSeconds?: number | null;
        /**
         * Runs that it may start within an hour.
         */
        maxPerHour?: number | null;
        connectionId?: string | null;
        /**
         * @minItems 1
         */
        events: [
          (
            | "issue.opened"
            | "issue.labeled"
            | "issue.assigned"
            | "issue.commented"
            | "issue.closed"
            | "pullRequest.opened"
            | "pullRequest.updated"
            | "pullRequest.labeled"
            | "pullRequest.reviewRequested"
            | "pullRequest.reviewSubmitted"
            | "pullRequest.reviewDismissed"
            | "pullRequest.commented"
            | "pullRequest.merged"
            | "pullRequest.closed"
            | "push"
            | "checks.failed"
            | "checks.passed"
            | "release.published"
            | "session.completed"
            | "session.failed"
            | "session.waiting"
            | "pullRequest.openedByOffstage"
            | "pullRequest.conflicted"
          ),
          ...(
            | "issue.opened"
            | "issue.labeled"
            | "issue.assigned"
            | "issue.commented"
            | "issue.closed"
            | "pullRequest.opened"
            | "pullRequest.updated"
            | "pullRequest.labeled"
            | "pullRequest.reviewRequested"
            | "pullRequest.reviewSubmitted"
            | "pullRequest.reviewDismissed"
            | "pullRequest.commented"
            | "pullRequest.merged"
            | "pullRequest.closed"
            | "push"
            | "checks.failed"
            | "checks.passed"
            | "release.published"
            | "session.completed"
            | "session.failed"
            | "session.waiting"
            | "pullRequest.openedByOffstage"
            | "pullRequest.conflicted"
          )[]
        ];
        /**
         * @maxItems 100
         */
        repositories?: string[];
        /**
         * subject: the result is a comment on the issue or pull request that the event is about. Default none.
         */
        reply?: "none" | "subject";
        /**
         * pullRequest: the run goes on with the branch of the pull request that the event is about, if that is in the repository. Default newBranch.
         */
        pushTo?: "newBranch" | "pullRequest";
      }
    | {
        type: "source";
        /**
         * Of a trigger that the automation has already; omitted: a new one.
         */
        id?: string;
        enabled?: boolean;
        /**
         * CEL over `event`, `trigger` and `repository`; empty: always.
         */
        condition?: string;
        concurrency?: {
          /**
           * CEL that gives a string: runs with the same one do not run at once.
           */
          key: string;
          policy: "skip" | "queue" | "cancelOlder";
        } | null;
        /**
         * Waits until so long nothing came, at most ten times as long; the newest runs.
         */
        debounceSeconds?: number | null;
        /**
         * Runs that it may start within an hour.
         */
        maxPerHour?: number | null;
        source: "sentry" | "linear" | "jira" | "slack" | "pagerduty" | "cloudEvents";
        /**
         * Empty: all.
         *
         * @maxItems 50
         */
        events?: string[];
        /**
         * The sender's own; omitted: one is made, and shown once.
         */
        secret?: string;
        /**
         * Of slack and linear: with it the thread or issue gets a link at the start and the result at the end. Omitted: the one that it has; empty: none. Never shown.
         */
        replyToken?: string;
      }
  )[];
  /**
   * Macro or id of a saved one; the other fields change it.
   */
  automation?: string;
  /**
   * A sample payload; default: the empty object.
   */
  event?: {
    [k: string]: unknown;
  };
  /**
   * Instead of `event`: the payload of this entry of the ledger.
   */
  ledgerId?: string;
  /**
   * Instead of `event`: a sample event, `<source>/<event>` or `<template>/<sample>`, such as `sentry/issue.created`.
   */
  sample?: string;
}
export interface AutomationPreviewDraftAnswer {
  /**
   * null: see `problem`.
   */
  prompt: string | null;
  /**
   * null: see `problem`.
   */
  title: string | null;
  /**
   * Why the instructions or the title can't be rendered.
   */
  problem: string | null;
  /**
   * With what they were rendered; the organization's secrets are masked.
   */
  event: {
    [k: string]: unknown;
  };
  eventName: string | null;
  /**
   * What conditions of triggers of type `forge` see as `repository`.
   */
  repository: {
    name: string;
    url: string;
  } | null;
  /**
   * In the order of the automation's list.
   */
  triggers: {
    /**
     * null: it is not saved.
     */
    id: string | null;
    type: "api" | "schedule" | "webhook" | "forge" | "source";
    enabled: boolean;
    /**
     * null: its type has no list of events.
     */
    listsEvent: boolean | null;
    /**
     * null: its type has no list of repositories.
     */
    listsRepository: boolean | null;
    /**
     * Whether its condition holds; null: see `problem`.
     */
    passes: boolean | null;
    /**
     * Why its condition or its key can't be evaluated.
     */
    problem: string | null;
    /**
     * null: it has none, or its condition does not hold.
     */
    concurrencyKey: string | null;
  }[];
}
export interface AutomationTemplateListAnswer {
  templates: {
    id: string;
    description: string;
    /**
     * Whether no trigger tells a repository: name those that it is to work on.
     */
    namesRepositories: boolean;
    /**
     * As `POST /automation/create` takes it.
     */
    automation: {
      name: string;
      macro: string;
      /**
       * A Liquid template; `event` is the trigger's body.
       */
      instructions: string;
      /**
       * A Liquid template of its sessions' titles; null: the first line of the rendered instructions.
       */
      title?: string | null;
      agent?: string | null;
      targetBranch?: string | null;
      /**
       * 5 usual, 9 least urgent.
       */
      priority: number;
      paused: boolean;
      /**
       * What one run may spend on models; never more than the organization lets a run.
       */
      budgetUsd?: number | null;
      /**
       * How the pull requests of its runs are opened: as drafts, with labels, reviewers, assignees.
       */
      pullRequest?: {
        /**
         * Whether they are opened as drafts.
         */
        draft: boolean;
        /**
         * Labels that they get.
         *
         * @maxItems 20
         */
        labels:
          | []
          | [string]
          | [string, string]
          | [string, string, string]
          | [string, string, string, string]
          | [string, string, string, string, string]
          | [string, string, string, string, string, string]
          | [string, string, string, string, string, string, string]
          | [string, string, string, string, string, string, string, string]
          | [string, string, string, string, string, string, string, string, string]
          | [string, string, string, string, string, string, string, string, string, string]
          | [string, string, string, string, string, string, string, string, string, string, string]
          | [string, string, string, string, string, string, string, string, string, string, string, string]
          | [string, string, string, string, string, string, string, string, string, string, string, string, string]
          | [
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string
            ]
          | [
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string
            ]
          | [
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string
            ]
          | [
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string
            ]
          | [
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string
            ]
          | [
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string
            ]
          | [
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string
            ];
        /**
         * Who is asked for a review, by the forge's name; `<organization>/<team>` for a team where it has some.
         *
         * @maxItems 20
         */
        reviewers:
          | []
          | [string]
          | [string, string]
          | [string, string, string]
          | [string, string, string, string]
          | [string, string, string, string, string]
          | [string, string, string, string, string, string]
          | [string, string, string, string, string, string, string]
          | [string, string, string, string, string, string, string, string]
          | [string, string, string, string, string, string, string, string, string]
          | [string, string, string, string, string, string, string, string, string, string]
          | [string, string, string, string, string, string, string, string, string, string, string]
          | [string, string, string, string, string, string, string, string, string, string, string, string]
          | [string, string, string, string, string, string, string, string, string, string, string, string, string]
          | [
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string
            ]
          | [
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string
            ]
          | [
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string
            ]
          | [
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string
            ]
          | [
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string
            ]
          | [
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string
            ]
          | [
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string
            ];
        /**
         * Who is assigned, by the forge's name.
         *
         * @maxItems 20
         */
        assignees:
          | []
          | [string]
          | [string, string]
          | [string, string, string]
          | [string, string, string, string]
          | [string, string, string, string, string]
          | [string, string, string, string, string, string]
          | [string, string, string, string, string, string, string]
          | [string, string, string, string, string, string, string, string]
          | [string, string, string, string, string, string, string, string, string]
          | [string, string, string, string, string, string, string, string, string, string]
          | [string, string, string, string, string, string, string, string, string, string, string]
          | [string, string, string, string, string, string, string, string, string, string, string, string]
          | [string, string, string, string, string, string, string, string, string, string, string, string, string]
          | [
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string
            ]
          | [
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string
            ]
          | [
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string
            ]
          | [
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string
            ]
          | [
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string
            ]
          | [
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string
            ]
          | [
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string,
              string
            ];
      } | null;
      /**
       * @maxItems 1000
       */
      triggers: (
        | {
            type: "api";
            enabled: boolean;
            /**
             * CEL over `event`, `trigger` and `repository`; empty: always.
             */
            condition: string;
            concurrency: {
              /**
               * CEL that gives a string: runs with the same one do not run at once.
               */
              key: string;
              policy: "skip" | "queue" | "cancelOlder";
            } | null;
            /**
             * Waits until so long nothing came, at most ten times as long; the newest runs.
             */
            debounceSeconds: number | null;
            /**
             * Runs that it may start within an hour.
             */
            maxPerHour: number | null;
          }
        | {
            type: "schedule";
            enabled: boolean;
            /**
             * CEL over `event`, `trigger` and `repository`; empty: always.
             */
            condition: string;
            concurrency: {
              /**
               * CEL that gives a string: runs with the same one do not run at once.
               */
              key: string;
              policy: "skip" | "queue" | "cancelOlder";
            } | null;
            /**
             * Waits until so long nothing came, at most ten times as long; the newest runs.
             */
            debounceSeconds: number | null;
            /**
             * Runs that it may start within an hour.
             */
            maxPerHour: number | null;
            cron: string;
            timeZone: string;
            missed: "runOnce" | "skip";
          }
        | {
            type: "webhook";
            enabled: boolean;
            /**
             * CEL over `event`, `trigger` and `repository`; empty: always.
             */
            condition: string;
            concurrency: {
              /**
               * CEL that gives a string: runs with the same one do not run at once.
               */
              key: string;
              policy: "skip" | "queue" | "cancelOlder";
            } | null;
            /**
             * Waits until so long nothing came, at most ten times as long; the newest runs.
             */
            debounceSeconds: number | null;
            /**
             * Runs that it may start within an hour.
             */
            maxPerHour: number | null;
            verify:
              | {
                  type: "none";
                }
              | {
                  type: "hmac";
                  header: string;
                  algorithm: "sha256" | "sha1" | "sha512";
                  encoding: "hex" | "base64";
                  prefix: string;
                }
              | {
                  type: "standardWebhooks";
                };
            /**
             * idAndContent: the sender's id of the delivery, and the same body within a minute. id: the id alone, for senders that repeat bodies on purpose. Default idAndContent.
             */
            deduplicateBy: "idAndContent" | "id";
          }
        | {
            type: "forge";
            enabled: boolean;
            /**
             * CEL over `event`, `trigger` and `repository`; empty: always.
             */
            condition: string;
            concurrency: {
              /**
               * CEL that gives a string: runs with the same one do not run at once.
               */
              key: string;
              policy: "skip" | "queue" | "cancelOlder";
            } | null;
            /**
             * Waits until so long nothing came, at most ten times as long; the newest runs.
             */
            debounceSeconds: number | null;
            /**
             * Runs that it may start within an hour.
             */
            maxPerHour: number | null;
            /**
             * @minItems 1
             */
            events: [
              (
                | "issue.opened"
                | "issue.labeled"
                | "issue.assigned"
                | "issue.commented"
                | "issue.closed"
                | "pullRequest.opened"
                | "pullRequest.updated"
                | "pullRequest.labeled"
                | "pullRequest.reviewRequested"
                | "pullRequest.reviewSubmitted"
                | "pullRequest.reviewDismissed"
                | "pullRequest.commented"
                | "pullRequest.merged"
                | "pullRequest.closed"
                | "push"
                | "checks.failed"
                | "checks.passed"
                | "release.published"
                | "session.completed"
                | "session.failed"
                | "session.waiting"
                | "pullRequest.openedByOffstage"
                | "pullRequest.conflicted"
              ),
              ...(
                | "issue.opened"
                | "issue.labeled"
                | "issue.assigned"
                | "issue.commented"
                | "issue.closed"
                | "pullRequest.opened"
                | "pullRequest.updated"
                | "pullRequest.labeled"
                | "pullRequest.reviewRequested"
                | "pullRequest.reviewSubmitted"
                | "pullRequest.reviewDismissed"
                | "pullRequest.commented"
                | "pullRequest.merged"
                | "pullRequest.closed"
                | "push"
                | "checks.failed"
                | "checks.passed"
                | "release.published"
                | "session.completed"
                | "session.failed"
                | "session.waiting"
                | "pullRequest.openedByOffstage"
                | "pullRequest.conflicted"
              )[]
            ];
            /**
             * subject: the result is a comment on the issue or pull request that the event is about. Default none.
             */
            reply: "none" | "subject";
            /**
             * pullRequest: the run goes on with the branch of the pull request that the event is about, if that is in the repository. Default newBranch.
             */
            pushTo: "newBranch" | "pullRequest";
          }
        | {
            type: "source";
            enabled: boolean;
            /**
             * CEL over `event`, `trigger` and `repository`; empty: always.
             */
            condition: string;
            concurrency: {
              /**
               * CEL that gives a string: runs with the same one do not run at once.
               */
              key: string;
              policy: "skip" | "queue" | "cancelOlder";
            } | null;
            /**
             * Waits until so long nothing came, at most ten times as long; the newest runs.
             */
            debounceSeconds: number | null;
            /**
             * Runs that it may start within an hour.
             */
            maxPerHour: number | null;
            source: "sentry" | "linear" | "jira" | "slack" | "pagerduty" | "cloudEvents";
            /**
             * Empty: all.
             *
             * @maxItems 50
             */
            events: string[];
          }
      )[];
    };
    /**
     * Names of sample events, as `POST /automation/preview` takes them.
     */
    samples: string[];
  }[];
}
export interface AutomationStateAnswer {
  entries: {
    key: string;
    /**
     * Any JSON.
     */
    value: {
      [k: string]: unknown;
    };
    /**
     * Another one after each write.
     */
    version: number;
    /**
     * The session whose agent wrote it; null: the API did.
     */
    sessionId: string | null;
    updatedAt: string;
  }[];
}
export interface AutomationStateUpdateBody {
  set?: {
    /**
     * Any JSON.
     */
    [k: string]: {
      [k: string]: unknown;
    };
  };
  /**
   * @maxItems 100
   */
  remove?: string[];
  /**
   * Of keys: the version that was read; 0: there was no such key. If one has another by now, nothing is changed. A key that is not named is changed whatever its version.
   */
  versions?: {
    [k: string]: number;
  };
}
export interface AutomationTriggerBody {
  [k: string]: unknown;
}
export interface AutomationTriggerAnswer {
  id: string;
  task: "RunWorkflow" | "RunAgent";
  status: "pending" | "running" | "completed" | "failed" | "cancelled";
  priority: number;
  createdAt: string;
  updatedAt: string;
}
export interface AgentTriggerBody {
  [k: string]: unknown;
}
export interface HookDeliverQuery {
  access_token?: string;
}
export interface JobListAnswer {
  jobs: JobGetAnswer[];
  nextCursor: string | null;
}
export interface LedgerListQuery {
  /**
   * 1 to 100, default 20
   */
  limit?: number;
  /**
   * nextCursor of the previous page
   */
  cursor?: string;
  automationId?: string;
  outcome?: "fired" | "duplicate" | "filtered" | "superseded" | "missed" | "failed" | "dead-lettered";
}
export interface LedgerListAnswer {
  entries: {
    /**
     * Of the job, if it started one.
     */
    id: string;
    /**
     * null: an event that several automations may answer.
     */
    automationId: string | null;
    triggerId: string | null;
    /**
     * The entry of the event that started it.
     */
    eventId: string | null;
    /**
     * The event's name, if it has one.
     */
    name: string | null;
    /**
     * null while it is under way.
     */
    outcome: ("fired" | "duplicate" | "filtered" | "superseded" | "missed" | "failed" | "dead-lettered") | null;
    /**
     * Why it did not fire.
     */
    reason: string | null;
    sessionId: string | null;
    /**
     * The entry that this is a duplicate or a replay of.
     */
    originalId: string | null;
    createdAt: string;
    updatedAt: string;
  }[];
  nextCursor: string | null;
}
export interface LedgerGetAnswer {
  /**
   * Of the job, if it started one.
   */
  id: string;
  /**
   * null: an event that several automations may answer.
   */
  automationId: string | null;
  triggerId: string | null;
  /**
   * The entry of the event that started it.
   */
  eventId: string | null;
  /**
   * The event's name, if it has one.
   */
  name: string | null;
  /**
   * null while it is under way.
   */
  outcome: ("fired" | "duplicate" | "filtered" | "superseded" | "missed" | "failed" | "dead-lettered") | null;
  /**
   * Why it did not fire.
   */
  reason: string | null;
  sessionId: string | null;
  /**
   * The entry that this is a duplicate or a replay of.
   */
  originalId: string | null;
  createdAt: string;
  updatedAt: string;
  /**
   * The event, with secrets masked; null if it is gone.
   */
  payload: {
    [k: string]: unknown;
  } | null;
  /**
   * The sender's.
   */
  deliveryId: string | null;
  subject: string | null;
  /**
   * Of an event: what its listeners made of it, at most 100.
   */
  decisions: {
    triggerId: string;
    automationId: string;
    outcome: "fired" | "filtered";
    reason: string | null;
  }[];
}
export interface RepositoryCreateBody {
  /**
   * http(s), ssh or scp-like URL, without credentials.
   */
  url: string;
  name?: string;
  /**
   * Default target branch, whose setup gets secrets: an admin's to choose. Else the remote's default branch.
   */
  branch?: string;
  description?: string;
}
export interface RepositoryListAnswer {
  codeRepositories: RepositoryGetAnswer[];
  nextCursor: string | null;
}
export interface RepositoryGetAnswer {
  id: string;
  name: string;
  url: string;
  branch: string | null;
  description: string | null;
  organizationId: string;
  enabledAt: string | null;
  createdAt: string;
  updatedAt: string;
  integration?: {
    id: string;
    name: string;
    type: "azure" | "github" | "gitlab" | "gitea" | "bitbucket" | "bitbucketDataCenter" | "git";
    configuration: {
      webUrl: string | null;
    };
  };
}
export interface RepositoryUpdateBody {
  name?: string;
  branch?: string | null;
  description?: string | null;
}
export interface RepositorySearchQuery {
  /**
   * What the names have; omitted: anything.
   */
  q?: string;
}
export interface RepositorySearchAnswer {
  repositories: {
    name: string;
    /**
     * What `repositories` of a session takes.
     */
    url: string;
    /**
     * The forge's name.
     */
    forge: string;
    defaultBranch: string | null;
    description: string | null;
  }[];
  /**
   * Whether the forge has no more that fit.
   */
  complete: boolean;
  /**
   * Forges that could not be looked through, and why.
   */
  problems: {
    forge: string;
    text: string;
  }[];
}
export interface RepositoryBranchesQuery {
  /**
   * The repository's address.
   */
  url: string;
  /**
   * What the names have; omitted: anything.
   */
  q?: string;
}
export interface RepositoryBranchesAnswer {
  branches: string[];
  /**
   * Whether the forge has no more that fit.
   */
  complete: boolean;
}
export interface RepositoryFilesQuery {
  /**
   * The repository's address.
   */
  url: string;
  branch: string;
  /**
   * What the names have; omitted: anything.
   */
  q?: string;
}
export interface RepositoryFilesAnswer {
  paths: string[];
  /**
   * Whether the forge has no more that fit.
   */
  complete: boolean;
}
export interface RepositoryTrySetupBody {
  /**
   * Whose files it works on; omitted: the branch that a session would begin with.
   */
  branch?: string;
}
export interface RepositoryAutomationFilesAnswer {
  enabled: boolean;
  /**
   * The branch that was read; null: none was.
   */
  branch: string | null;
  commit: string | null;
  syncedAt: string | null;
  /**
   * Why the branch could not be read.
   */
  problem: string | null;
  files: {
    path: string;
    url: string | null;
    /**
     * What its last good version made.
     */
    automationId: string | null;
    /**
     * Why its newest version does not count.
     */
    problem: string | null;
  }[];
}
export interface RepositorySetAutomationFilesBody {
  /**
   * Whether whoever may push to the branch may define automations.
   */
  enabled: boolean;
}
export interface RepositoryEgressAnswer {
  egress: string[];
}
export interface RepositorySetEgressBody {
  /**
   * @maxItems 500
   */
  egress: string[];
}
export interface RepositorySetEgressAnswer {
  egress: string[];
}
export interface RepositoryAllowBody {
  host: string;
}
export interface RepositoryAllowAnswer {
  egress: string[];
}
export interface RepositoryEnvironmentAnswer {
  /**
   * Run in each new clone before the agent; null: as .devcontainer/devcontainer.json says.
   */
  setupScript: string | null;
  /**
   * Set for the script and the agent. For secrets see /secret/create.
   */
  variables: {
    [k: string]: string;
  };
  /**
   * Folders that clones have, with the files directly in the root and in the folders above them (git's sparse checkout, cone mode); empty: everything.
   *
   * @maxItems 200
   */
  sparse: string[];
}
export interface RepositoryUpdateEnvironmentBody {
  /**
   * Run in each new clone before the agent; null: as .devcontainer/devcontainer.json says.
   */
  setupScript?: string | null;
  /**
   * Set for the script and the agent. For secrets see /secret/create.
   */
  variables?: {
    [k: string]: string;
  };
  /**
   * Folders that clones have, with the files directly in the root and in the folders above them (git's sparse checkout, cone mode); empty: everything.
   *
   * @maxItems 200
   */
  sparse?: string[];
}
export interface RepositoryLimitsAnswer {
  /**
   * Sessions that may run on it at once; null: the server's limit.
   */
  maxRunningSessions: number | null;
}
export interface RepositorySetLimitsBody {
  /**
   * Sessions that may run on it at once; null: the server's limit.
   */
  maxRunningSessions: number | null;
}
export interface RepositoryFindingsAnswer {
  allowedFindings: RepositoryAllowFindingBody[];
}
export interface RepositoryAllowFindingBody {
  /**
   * Path in the repository; `*` stands for any part of a name, `**` for any folders.
   */
  path?: string;
  /**
   * Rule as a failure names it, for example `github`; `not-read` for what is too large.
   */
  rule?: string;
  /**
   * Of the value, as a failure names it.
   */
  fingerprint?: string;
}
export interface RepositorySetAllowedFindingsBody {
  /**
   * @maxItems 500
   */
  allowedFindings: RepositoryAllowFindingBody[];
}
export interface OrganizationGetAnswer {
  id: string;
  name: string;
  /**
   * For sessions that name none; null: the server's.
   */
  defaultAgent: string | null;
  /**
   * null: the server's.
   */
  maxRunningSessions: number | null;
  /**
   * Hosts that all of its sandboxes may reach.
   *
   * @maxItems 500
   */
  egress: string[];
  /**
   * Models that agents may use, `*` for any characters; null: all that the server allows.
   */
  models: string[] | null;
  /**
   * Repositories that its sessions may name, such as github.com/acme/*; null: every one.
   */
  repositories: string[] | null;
  /**
   * What one session may spend on models.
   */
  sessionBudgetUsd: number | null;
  /**
   * The same for sessions that an automation started.
   */
  runBudgetUsd: number | null;
  /**
   * What all of them may spend in a month (UTC).
   */
  monthlyBudgetUsd: number | null;
  /**
   * Whether it uses the operator's credentials of forges, ssh keys and local repositories; if not, only what it connects itself, and what is public.
   */
  usesServerForges: boolean;
  spentUsd: number;
}
export interface OrganizationUpdateBody {
  /**
   * For sessions that name none; null: the server's.
   */
  defaultAgent?: string | null;
  /**
   * null: the server's.
   */
  maxRunningSessions?: number | null;
  /**
   * Hosts that all of its sandboxes may reach.
   *
   * @maxItems 500
   */
  egress?: string[];
  /**
   * Models that agents may use, `*` for any characters; null: all that the server allows.
   */
  models?: string[] | null;
  /**
   * Repositories that its sessions may name, such as github.com/acme/*; null: every one.
   */
  repositories?: string[] | null;
  /**
   * What one session may spend on models.
   */
  sessionBudgetUsd?: number | null;
  /**
   * The same for sessions that an automation started.
   */
  runBudgetUsd?: number | null;
  /**
   * What all of them may spend in a month (UTC).
   */
  monthlyBudgetUsd?: number | null;
}
export interface OrganizationListAnswer {
  organizations: OrganizationUpdateOtherOrganizationAnswer[];
  nextCursor: string | null;
}
export interface OrganizationUpdateOtherOrganizationAnswer {
  id: string;
  name: string;
  createdAt: string;
  /**
   * Whether it uses the operator's credentials of forges, ssh keys and local repositories; if not, only what it connects itself, and what is public.
   */
  usesServerForges: boolean;
  /**
   * People who may sign in to it, those who were invited included.
   */
  members: number;
  /**
   * Its sessions, at most 10000 of which are counted.
   */
  sessions: number;
  /**
   * When its newest session was created; null: it has none.
   */
  lastSessionAt: string | null;
}
export interface OrganizationCreateBody {
  name: string;
  /**
   * Its first admin, who is invited; null or omitted: the answer has an admin key instead.
   */
  admin?: {
    name: string;
    /**
     * Whoever an identity provider says has this address signs in as the person invited. The link is mailed there, if the server has a mail server.
     */
    email?: string | null;
    /**
     * Of the mail; default en.
     */
    language?: "en" | "de";
  } | null;
  /**
   * Whether it uses the operator's credentials of forges, ssh keys and local repositories; if not, only what it connects itself, and what is public.
   */
  usesServerForges?: boolean;
}
export interface OrganizationCreateAnswer {
  organization: OrganizationUpdateOtherOrganizationAnswer;
  /**
   * Of its first admin; null: there is a key instead.
   */
  invitation: UserInviteAnswer | null;
  /**
   * An admin key, shown only now; null: somebody was invited.
   */
  adminKey: string | null;
}
export interface UserInviteAnswer {
  user: UserUpdateAnswer;
  /**
   * Signs one browser in as this person, once.
   */
  url: string;
  expiresAt: string;
  /**
   * The address to which the link is mailed, too; `invitationMail` of the user says what came of it. null: there is no address, or the server has no mail server.
   */
  mailedTo: string | null;
}
export interface UserUpdateAnswer {
  id: string;
  name: string;
  email: string | null;
  /**
   * Address of the identity provider that authenticated the user; invitation if none has, since a link signs them in.
   */
  issuer: string;
  role: "admin" | "member" | "viewer";
  createdAt: string;
  /**
   * null: nobody invited them.
   */
  invitedAt: string | null;
  /**
   * The mail with their newest link; null: there is none, or the link has ended.
   */
  invitationMail: {
    /**
     * dead: the mail server refused it, or could not be reached for a day.
     */
    status: "pending" | "sent" | "dead";
    /**
     * Why it was not sent, as the last attempt had it.
     */
    problem: string | null;
  } | null;
  /**
   * null: they have not signed in to this organization yet.
   */
  lastSignInAt: string | null;
  /**
   * When they, or a program that acts for them, last asked for something, as far as sign-ins tell that still stand.
   */
  lastSeenAt: string | null;
  disabledAt: string | null;
}
export interface OrganizationUpdateOtherOrganizationBody {
  /**
   * Whether it uses the operator's credentials of forges, ssh keys and local repositories; if not, only what it connects itself, and what is public.
   */
  usesServerForges: boolean;
}
export interface OrganizationEraseBody {
  /**
   * The organization's name, to confirm that it is meant.
   */
  name: string;
}
export interface OrganizationEraseAnswer {
  organizationId: string;
  askedAt: string;
}
export interface OrganizationEraseOrganizationBody {
  /**
   * The organization's name, to confirm that it is meant.
   */
  name: string;
}
export interface SecretCreateBody {
  /**
   * Name of the environment variable.
   */
  name: string;
  /**
   * Never shown again.
   */
  value: string;
  /**
   * Default: setup only, which the agent does not see.
   *
   * @minItems 1
   */
  phases?: ["setup" | "agent", ...("setup" | "agent")[]];
  /**
   * Default: for every repository.
   */
  repositoryId?: string | null;
}
export interface SecretCreateAnswer {
  id: string;
  name: string;
  phases: ("setup" | "agent")[];
  repositoryId: string | null;
  createdAt: string;
  updatedAt: string;
}
export interface SecretListQuery {
  /**
   * 1 to 100, default 20
   */
  limit?: number;
  /**
   * nextCursor of the previous page
   */
  cursor?: string;
  repositoryId?: string;
}
export interface SecretListAnswer {
  secrets: SecretCreateAnswer[];
  nextCursor: string | null;
}
export interface SecretUpdateBody {
  value?: string;
  /**
   * @minItems 1
   */
  phases?: ["setup" | "agent", ...("setup" | "agent")[]];
}
export interface RegistryCreateBody {
  kind: "npm" | "pypi" | "maven" | "cargo" | "go" | "nuget" | "rubygems";
  /**
   * Address that its tool is configured with; everything below it gets the credential. nuget: its index.json, everything beside that, and where it says that packages are, at the same host. pypi: everything beside its `/simple/` too, and on Azure Artifacts the downloads of the project's or organization's feeds. npm: for GitLab's address of an instance or group, the packages of its projects too. cargo: also where its config.json says that its crates are, at the same host.
   */
  url: string;
  /**
   * npm: the scope that comes from it (`@acme`). cargo: its name. go: patterns of its modules, which no checksum database is asked about. Default: everything that its tool installs comes from it.
   */
  scope?: string | null;
  /**
   * With it the token is a password (Basic). Without it the token is sent as `Bearer`.
   */
  username?: string | null;
  /**
   * Never shown again, and never in a sandbox.
   */
  token: string;
}
export interface RegistryCreateAnswer {
  id: string;
  kind: "npm" | "pypi" | "maven" | "cargo" | "go" | "nuget" | "rubygems";
  url: string;
  scope: string | null;
  username: string | null;
  createdAt: string;
  updatedAt: string;
}
export interface RegistryListAnswer {
  registries: RegistryCreateAnswer[];
  nextCursor: string | null;
}
export interface RegistryUpdateBody {
  token: string;
}
export interface ConnectionCreateBody {
  kind: "azure" | "github" | "gitlab" | "gitea" | "bitbucket" | "bitbucketDataCenter" | "git";
  /**
   * Default: the address's host.
   */
  name?: string;
  /**
   * The forge's address, or that of one owner on it (`https://github.com/acme`): the longest that fits a repository counts. Default: the public server of the kind.
   */
  webUrl?: string;
  /**
   * Default: where the kind has its API.
   */
  apiUrl?: string;
  /**
   * Never shown again, and never in a sandbox.
   */
  credential:
    | {
        type: "token";
        token: string;
        /**
         * Of a plain git server, whose token is a password: default `git`. Of Bitbucket, the account's address of an API token. Of Bitbucket Data Center, whose the token is: default `x-token-auth`.
         */
        username?: string;
      }
    | {
        type: "app";
        appId: string;
        /**
         * The App's private key, as PEM.
         */
        privateKey: string;
      }
    | {
        type: "configured";
      };
  /**
   * The secret that the forge signs its deliveries with; omitted: one is made.
   */
  webhookSecret?: string;
  /**
   * The word that calls Offstage in its comments, such as `offstage`; null: OFFSTAGE_MENTION.
   */
  mention?: string | null;
  /**
   * Logins of the bots that may steer sessions there; null: OFFSTAGE_ALLOWED_BOTS; an empty list: none.
   */
  allowedBots?: string[] | null;
  /**
   * Of azure: the repository that work items are about, by their project, such as `{ "Shop": "backend" }`. Default: that of the project's name.
   */
  workItemRepositories?: {
    [k: string]: string;
  } | null;
}
export interface ConnectionCreateAnswer {
  id: string;
  kind: "azure" | "github" | "gitlab" | "gitea" | "bitbucket" | "bitbucketDataCenter" | "git";
  name: string;
  webUrl: string;
  apiUrl: string | null;
  credential: "token" | "app" | "configured";
  /**
   * Whose the credential is; null: the forge does not say.
   */
  account: string | null;
  /**
   * Where its GitHub App is installed on further accounts.
   */
  installUrl: string | null;
  /**
   * The word that calls Offstage; null: OFFSTAGE_MENTION.
   */
  mention: string | null;
  /**
   * Bots that may steer sessions; null: OFFSTAGE_ALLOWED_BOTS.
   */
  allowedBots: string[] | null;
  /**
   * Repositories that work items are about, by their projects; null: those of their names.
   */
  workItemRepositories: {
    [k: string]: string;
  } | null;
  /**
   * The address that the forge's webhook must have.
   */
  hookUrl: string;
  /**
   * Until when deliveries that are signed with the webhook secret before are accepted.
   */
  previousSecretUntil: string | null;
  health: {
    state: "ok" | "degraded" | "broken";
    checkedAt: string;
    problems: {
      /**
       * The scope or permission, or what else is not as it should be.
       */
      missing: string;
      /**
       * What can't be done without it.
       */
      why: string;
      remedy: string;
      /**
       * Whether sessions can't work without it.
       */
      essential: boolean;
    }[];
  };
  createdAt: string;
  updatedAt: string;
  /**
   * For the forge's webhook. Never shown again.
   */
  webhookSecret: string;
}
export interface ConnectionListAnswer {
  connections: ConnectionGetAnswer[];
  nextCursor: string | null;
}
export interface ConnectionGetAnswer {
  id: string;
  kind: "azure" | "github" | "gitlab" | "gitea" | "bitbucket" | "bitbucketDataCenter" | "git";
  name: string;
  webUrl: string;
  apiUrl: string | null;
  credential: "token" | "app" | "configured";
  /**
   * Whose the credential is; null: the forge does not say.
   */
  account: string | null;
  /**
   * Where its GitHub App is installed on further accounts.
   */
  installUrl: string | null;
  /**
   * The word that calls Offstage; null: OFFSTAGE_MENTION.
   */
  mention: string | null;
  /**
   * Bots that may steer sessions; null: OFFSTAGE_ALLOWED_BOTS.
   */
  allowedBots: string[] | null;
  /**
   * Repositories that work items are about, by their projects; null: those of their names.
   */
  workItemRepositories: {
    [k: string]: string;
  } | null;
  /**
   * The address that the forge's webhook must have.
   */
  hookUrl: string;
  /**
   * Until when deliveries that are signed with the webhook secret before are accepted.
   */
  previousSecretUntil: string | null;
  health: {
    state: "ok" | "degraded" | "broken";
    checkedAt: string;
    problems: {
      /**
       * The scope or permission, or what else is not as it should be.
       */
      missing: string;
      /**
       * What can't be done without it.
       */
      why: string;
      remedy: string;
      /**
       * Whether sessions can't work without it.
       */
      essential: boolean;
    }[];
  };
  createdAt: string;
  updatedAt: string;
}
export interface ConnectionUpdateBody {
  name?: string;
  credential?:
    | {
        type: "token";
        token: string;
        /**
         * Of a plain git server, whose token is a password: default `git`. Of Bitbucket, the account's address of an API token. Of Bitbucket Data Center, whose the token is: default `x-token-auth`.
         */
        username?: string;
      }
    | {
        type: "app";
        appId: string;
        /**
         * The App's private key, as PEM.
         */
        privateKey: string;
      }
    | {
        type: "configured";
      };
  /**
   * The word that calls Offstage in its comments, such as `offstage`; null: OFFSTAGE_MENTION.
   */
  mention?: string | null;
  /**
   * Logins of the bots that may steer sessions there; null: OFFSTAGE_ALLOWED_BOTS; an empty list: none.
   */
  allowedBots?: string[] | null;
  /**
   * Of azure: the repository that work items are about, by their project, such as `{ "Shop": "backend" }`. Default: that of the project's name.
   */
  workItemRepositories?: {
    [k: string]: string;
  } | null;
}
export interface ConnectionRotateSecretBody {
  /**
   * The secret that the forge signs its deliveries with; omitted: one is made.
   */
  webhookSecret?: string;
}
export interface ConnectionDeleteAnswer {
  id: string;
  kind: "azure" | "github" | "gitlab" | "gitea" | "bitbucket" | "bitbucketDataCenter" | "git";
  name: string;
  webUrl: string;
  apiUrl: string | null;
  credential: "token" | "app" | "configured";
  /**
   * Whose the credential is; null: the forge does not say.
   */
  account: string | null;
  /**
   * Where its GitHub App is installed on further accounts.
   */
  installUrl: string | null;
  /**
   * The word that calls Offstage; null: OFFSTAGE_MENTION.
   */
  mention: string | null;
  /**
   * Bots that may steer sessions; null: OFFSTAGE_ALLOWED_BOTS.
   */
  allowedBots: string[] | null;
  /**
   * Repositories that work items are about, by their projects; null: those of their names.
   */
  workItemRepositories: {
    [k: string]: string;
  } | null;
  /**
   * The address that the forge's webhook must have.
   */
  hookUrl: string;
  /**
   * Until when deliveries that are signed with the webhook secret before are accepted.
   */
  previousSecretUntil: string | null;
  health: {
    state: "ok" | "degraded" | "broken";
    checkedAt: string;
    problems: {
      /**
       * The scope or permission, or what else is not as it should be.
       */
      missing: string;
      /**
       * What can't be done without it.
       */
      why: string;
      remedy: string;
      /**
       * Whether sessions can't work without it.
       */
      essential: boolean;
    }[];
  };
  createdAt: string;
  updatedAt: string;
  /**
   * Connected repositories that it served: from now on the operator's configuration is used for them, if it has one.
   */
  repositories: number;
}
export interface AccountCreateBody {
  /**
   * The forge's address, or that of one owner on it: the longest that fits a repository counts. The server, or a connection of the organization, must know the forge.
   */
  webUrl: string;
  /**
   * A personal access token. Never shown again, and never in a sandbox.
   */
  token: string;
  /**
   * Of Bitbucket, the account's e-mail address of an API token. Of Bitbucket Data Center, whose the token is. Of others none.
   */
  username?: string;
}
export interface AccountListAnswer {
  accounts: AccountGetAnswer[];
  nextCursor: string | null;
}
export interface AccountGetAnswer {
  id: string;
  kind: "azure" | "github" | "gitlab" | "gitea" | "bitbucket" | "bitbucketDataCenter" | "git";
  webUrl: string;
  /**
   * Where the token was checked, and the only address that it is sent to.
   */
  apiUrl: string;
  /**
   * Whose the token is, as the forge says.
   */
  name: string;
  health: {
    /**
     * `broken`: it is not used any more, until it is replaced or checked again.
     */
    state: "ok" | "degraded" | "broken";
    checkedAt: string;
    problems: {
      /**
       * The scope or permission, or what else is not as it should be.
       */
      missing: string;
      /**
       * What can't be done without it.
       */
      why: string;
      remedy: string;
      /**
       * Whether sessions can't work without it.
       */
      essential: boolean;
    }[];
  };
  createdAt: string;
  updatedAt: string;
}
export interface AccountUpdateBody {
  /**
   * A personal access token. Never shown again, and never in a sandbox.
   */
  token: string;
  /**
   * Of Bitbucket, the account's e-mail address of an API token. Of Bitbucket Data Center, whose the token is. Of others none.
   */
  username?: string;
}
export interface InsightFiguresQuery {
  /**
   * The first day, in UTC. Default: 29 days before the last.
   */
  from?: string;
  /**
   * The last day, in UTC. Default: today.
   */
  to?: string;
  /**
   * Length of the periods. A week begins on Monday.
   */
  by?: "day" | "week";
  /**
   * Figures of each of these too.
   */
  groupBy?: "repository" | "automation" | "agent" | "model" | "person";
  /**
   * Only what belongs to this one of `groupBy`: the key of one of its groups.
   */
  key?: string;
  /**
   * Only work on this repository.
   */
  repositoryId?: string;
}
export interface InsightFiguresAnswer {
  /**
   * The first day.
   */
  from: string;
  /**
   * The last day.
   */
  to: string;
  by: "day" | "week";
  timeZone: "UTC";
  groupBy: ("repository" | "automation" | "agent" | "model" | "person") | null;
  total: {
    /**
     * Created in the period.
     */
    sessions: number;
    completed: number;
    failed: number;
    cancelled: number;
    /**
     * Not over yet.
     */
    underWay: number;
    /**
     * Opened in the period.
     */
    pullRequests: number;
    /**
     * Of these, merged within 30 days of their opening.
     */
    merged: number;
    /**
     * Of these, closed without being merged.
     */
    closed: number;
    /**
     * `merged` of `pullRequests`, from 0 to 1; null: none was opened.
     */
    shareMerged: number | null;
    /**
     * Time from a session's creation to a pull request of it: half took at most this long.
     */
    openingP50Ms: number | null;
    /**
     * The same, of nine in ten.
     */
    openingP90Ms: number | null;
    /**
     * Time from a pull request's opening to its merge, of those in `merged`: half took at most this long.
     */
    mergingP50Ms: number | null;
    /**
     * The same, of nine in ten.
     */
    mergingP90Ms: number | null;
    /**
     * Time in the queue before a session first began, of those that are over: half waited at most this long.
     */
    waitP50Ms: number | null;
    /**
     * The same, of nine in ten.
     */
    waitP90Ms: number | null;
    /**
     * Messages to the session while its pull request was open, for each pull request; null: none was opened.
     */
    reviewRounds: number | null;
    /**
     * Sent to models in the period, without what they had cached.
     */
    inputTokens: number;
    outputTokens: number;
    cacheReadTokens: number;
    cacheWriteTokens: number;
    /**
     * Part of `outputTokens`.
     */
    reasoningTokens: number;
    /**
     * What models cost in the period, as far as they have a price.
     */
    costUsd: number;
    /**
     * `costUsd` for each of `merged`; null: none was merged.
     */
    costPerMergedUsd: number | null;
  };
  periods: {
    /**
     * Created in the period.
     */
    sessions: number;
    completed: number;
    failed: number;
    cancelled: number;
    /**
     * Not over yet.
     */
    underWay: number;
    /**
     * Opened in the period.
     */
    pullRequests: number;
    /**
     * Of these, merged within 30 days of their opening.
     */
    merged: number;
    /**
     * Of these, closed without being merged.
     */
    closed: number;
    /**
     * `merged` of `pullRequests`, from 0 to 1; null: none was opened.
     */
    shareMerged: number | null;
    /**
     * Time from a session's creation to a pull request of it: half took at most this long.
     */
    openingP50Ms: number | null;
    /**
     * The same, of nine in ten.
     */
    openingP90Ms: number | null;
    /**
     * Time from a pull request's opening to its merge, of those in `merged`: half took at most this long.
     */
    mergingP50Ms: number | null;
    /**
     * The same, of nine in ten.
     */
    mergingP90Ms: number | null;
    /**
     * Time in the queue before a session first began, of those that are over: half waited at most this long.
     */
    waitP50Ms: number | null;
    /**
     * The same, of nine in ten.
     */
    waitP90Ms: number | null;
    /**
     * Messages to the session while its pull request was open, for each pull request; null: none was opened.
     */
    reviewRounds: number | null;
    /**
     * Sent to models in the period, without what they had cached.
     */
    inputTokens: number;
    outputTokens: number;
    cacheReadTokens: number;
    cacheWriteTokens: number;
    /**
     * Part of `outputTokens`.
     */
    reasoningTokens: number;
    /**
     * What models cost in the period, as far as they have a price.
     */
    costUsd: number;
    /**
     * `costUsd` for each of `merged`; null: none was merged.
     */
    costPerMergedUsd: number | null;
    /**
     * The period's first day.
     */
    from: string;
  }[];
  /**
   * Those with the most sessions first.
   */
  groups: {
    /**
     * Created in the period.
     */
    sessions: number;
    completed: number;
    failed: number;
    cancelled: number;
    /**
     * Not over yet.
     */
    underWay: number;
    /**
     * Opened in the period.
     */
    pullRequests: number;
    /**
     * Of these, merged within 30 days of their opening.
     */
    merged: number;
    /**
     * Of these, closed without being merged.
     */
    closed: number;
    /**
     * `merged` of `pullRequests`, from 0 to 1; null: none was opened.
     */
    shareMerged: number | null;
    /**
     * Time from a session's creation to a pull request of it: half took at most this long.
     */
    openingP50Ms: number | null;
    /**
     * The same, of nine in ten.
     */
    openingP90Ms: number | null;
    /**
     * Time from a pull request's opening to its merge, of those in `merged`: half took at most this long.
     */
    mergingP50Ms: number | null;
    /**
     * The same, of nine in ten.
     */
    mergingP90Ms: number | null;
    /**
     * Time in the queue before a session first began, of those that are over: half waited at most this long.
     */
    waitP50Ms: number | null;
    /**
     * The same, of nine in ten.
     */
    waitP90Ms: number | null;
    /**
     * Messages to the session while its pull request was open, for each pull request; null: none was opened.
     */
    reviewRounds: number | null;
    /**
     * Sent to models in the period, without what they had cached.
     */
    inputTokens: number;
    outputTokens: number;
    cacheReadTokens: number;
    cacheWriteTokens: number;
    /**
     * Part of `outputTokens`.
     */
    reasoningTokens: number;
    /**
     * What models cost in the period, as far as they have a price.
     */
    costUsd: number;
    /**
     * `costUsd` for each of `merged`; null: none was merged.
     */
    costPerMergedUsd: number | null;
    /**
     * An id, or a name; empty: what belongs to none.
     */
    key: string;
    /**
     * Null: what belongs to none, or the key is an id that is not known any more.
     */
    name: string | null;
  }[];
  /**
   * There are more than 100 groups.
   */
  groupsLeftOut: boolean;
}
export interface NoticeSettingsAnswer {
  settings: {
    kind:
      | "session.completed"
      | "session.failed"
      | "session.waiting"
      | "pullRequest.opened"
      | "pullRequest.conflicted"
      | "pullRequest.merged"
      | "automation.paused"
      | "automation.silent";
    email: "off" | "mine" | "all";
    push: "off" | "mine" | "all";
  }[];
  email: {
    /**
     * As the identity provider verified it; null: none is known.
     */
    address: string | null;
    /**
     * Whether the server can send mail.
     */
    available: boolean;
  };
  push: {
    /**
     * What a browser subscribes with (`applicationServerKey`), in base64url.
     */
    publicKey: string;
  };
}
export interface NoticeSettingsUpdateBody {
  /**
   * @maxItems 8
   */
  settings:
    | []
    | [
        {
          kind:
            | "session.completed"
            | "session.failed"
            | "session.waiting"
            | "pullRequest.opened"
            | "pullRequest.conflicted"
            | "pullRequest.merged"
            | "automation.paused"
            | "automation.silent";
          email?: "off" | "mine" | "all";
          push?: "off" | "mine" | "all";
        }
      ]
    | [
        {
          kind:
            | "session.completed"
            | "session.failed"
            | "session.waiting"
            | "pullRequest.opened"
            | "pullRequest.conflicted"
            | "pullRequest.merged"
            | "automation.paused"
            | "automation.silent";
          email?: "off" | "mine" | "all";
          push?: "off" | "mine" | "all";
        },
        {
          kind:
            | "session.completed"
            | "session.failed"
            | "session.waiting"
            | "pullRequest.opened"
            | "pullRequest.conflicted"
            | "pullRequest.merged"
            | "automation.paused"
            | "automation.silent";
          email?: "off" | "mine" | "all";
          push?: "off" | "mine" | "all";
        }
      ]
    | [
        {
          kind:
            | "session.completed"
            | "session.failed"
            | "session.waiting"
            | "pullRequest.opened"
            | "pullRequest.conflicted"
            | "pullRequest.merged"
            | "automation.paused"
            | "automation.silent";
          email?: "off" | "mine" | "all";
          push?: "off" | "mine" | "all";
        },
        {
          kind:
            | "session.completed"
            | "session.failed"
            | "session.waiting"
            | "pullRequest.opened"
            | "pullRequest.conflicted"
            | "pullRequest.merged"
            | "automation.paused"
            | "automation.silent";
          email?: "off" | "mine" | "all";
          push?: "off" | "mine" | "all";
        },
        {
          kind:
            | "session.completed"
            | "session.failed"
            | "session.waiting"
            | "pullRequest.opened"
            | "pullRequest.conflicted"
            | "pullRequest.merged"
            | "automation.paused"
            | "automation.silent";
          email?: "off" | "mine" | "all";
          push?: "off" | "mine" | "all";
        }
      ]
    | [
        {
          kind:
            | "session.completed"
            | "session.failed"
            | "session.waiting"
            | "pullRequest.opened"
            | "pullRequest.conflicted"
            | "pullRequest.merged"
            | "automation.paused"
            | "automation.silent";
          email?: "off" | "mine" | "all";
          push?: "off" | "mine" | "all";
        },
        {
          kind:
            | "session.completed"
            | "session.failed"
            | "session.waiting"
            | "pullRequest.opened"
            | "pullRequest.conflicted"
            | "pullRequest.merged"
            | "automation.paused"
            | "automation.silent";
          email?: "off" | "mine" | "all";
          push?: "off" | "mine" | "all";
        },
        {
          kind:
            | "session.completed"
            | "session.failed"
            | "session.waiting"
            | "pullRequest.opened"
            | "pullRequest.conflicted"
            | "pullRequest.merged"
            | "automation.paused"
            | "automation.silent";
          email?: "off" | "mine" | "all";
          push?: "off" | "mine" | "all";
        },
        {
          kind:
            | "session.completed"
            | "session.failed"
            | "session.waiting"
            | "pullRequest.opened"
            | "pullRequest.conflicted"
            | "pullRequest.merged"
            | "automation.paused"
            | "automation.silent";
          email?: "off" | "mine" | "all";
          push?: "off" | "mine" | "all";
        }
      ]
    | [
        {
          kind:
            | "session.completed"
            | "session.failed"
            | "session.waiting"
            | "pullRequest.opened"
            | "pullRequest.conflicted"
            | "pullRequest.merged"
            | "automation.paused"
            | "automation.silent";
          email?: "off" | "mine" | "all";
          push?: "off" | "mine" | "all";
        },
        {
          kind:
            | "session.completed"
            | "session.failed"
            | "session.waiting"
            | "pullRequest.opened"
            | "pullRequest.conflicted"
            | "pullRequest.merged"
            | "automation.paused"
            | "automation.silent";
          email?: "off" | "mine" | "all";
          push?: "off" | "mine" | "all";
        },
        {
          kind:
            | "session.completed"
            | "session.failed"
            | "session.waiting"
            | "pullRequest.opened"
            | "pullRequest.conflicted"
            | "pullRequest.merged"
            | "automation.paused"
            | "automation.silent";
          email?: "off" | "mine" | "all";
          push?: "off" | "mine" | "all";
        },
        {
          kind:
            | "session.completed"
            | "session.failed"
            | "session.waiting"
            | "pullRequest.opened"
            | "pullRequest.conflicted"
            | "pullRequest.merged"
            | "automation.paused"
            | "automation.silent";
          email?: "off" | "mine" | "all";
          push?: "off" | "mine" | "all";
        },
        {
          kind:
            | "session.completed"
            | "session.failed"
            | "session.waiting"
            | "pullRequest.opened"
            | "pullRequest.conflicted"
            | "pullRequest.merged"
            | "automation.paused"
            | "automation.silent";
          email?: "off" | "mine" | "all";
          push?: "off" | "mine" | "all";
        }
      ]
    | [
        {
          kind:
            | "session.completed"
            | "session.failed"
            | "session.waiting"
            | "pullRequest.opened"
            | "pullRequest.conflicted"
            | "pullRequest.merged"
            | "automation.paused"
            | "automation.silent";
          email?: "off" | "mine" | "all";
          push?: "off" | "mine" | "all";
        },
        {
          kind:
            | "session.completed"
            | "session.failed"
            | "session.waiting"
            | "pullRequest.opened"
            | "pullRequest.conflicted"
            | "pullRequest.merged"
            | "automation.paused"
            | "automation.silent";
          email?: "off" | "mine" | "all";
          push?: "off" | "mine" | "all";
        },
        {
          kind:
            | "session.completed"
            | "session.failed"
            | "session.waiting"
            | "pullRequest.opened"
            | "pullRequest.conflicted"
            | "pullRequest.merged"
            | "automation.paused"
            | "automation.silent";
          email?: "off" | "mine" | "all";
          push?: "off" | "mine" | "all";
        },
        {
          kind:
            | "session.completed"
            | "session.failed"
            | "session.waiting"
            | "pullRequest.opened"
            | "pullRequest.conflicted"
            | "pullRequest.merged"
            | "automation.paused"
            | "automation.silent";
          email?: "off" | "mine" | "all";
          push?: "off" | "mine" | "all";
        },
        {
          kind:
            | "session.completed"
            | "session.failed"
            | "session.waiting"
            | "pullRequest.opened"
            | "pullRequest.conflicted"
            | "pullRequest.merged"
            | "automation.paused"
            | "automation.silent";
          email?: "off" | "mine" | "all";
          push?: "off" | "mine" | "all";
        },
        {
          kind:
            | "session.completed"
            | "session.failed"
            | "session.waiting"
            | "pullRequest.opened"
            | "pullRequest.conflicted"
            | "pullRequest.merged"
            | "automation.paused"
            | "automation.silent";
          email?: "off" | "mine" | "all";
          push?: "off" | "mine" | "all";
        }
      ]
    | [
        {
          kind:
            | "session.completed"
            | "session.failed"
            | "session.waiting"
            | "pullRequest.opened"
            | "pullRequest.conflicted"
            | "pullRequest.merged"
            | "automation.paused"
            | "automation.silent";
          email?: "off" | "mine" | "all";
          push?: "off" | "mine" | "all";
        },
        {
          kind:
            | "session.completed"
            | "session.failed"
            | "session.waiting"
            | "pullRequest.opened"
            | "pullRequest.conflicted"
            | "pullRequest.merged"
            | "automation.paused"
            | "automation.silent";
          email?: "off" | "mine" | "all";
          push?: "off" | "mine" | "all";
        },
        {
          kind:
            | "session.completed"
            | "session.failed"
            | "session.waiting"
            | "pullRequest.opened"
            | "pullRequest.conflicted"
            | "pullRequest.merged"
            | "automation.paused"
            | "automation.silent";
          email?: "off" | "mine" | "all";
          push?: "off" | "mine" | "all";
        },
        {
          kind:
            | "session.completed"
            | "session.failed"
            | "session.waiting"
            | "pullRequest.opened"
            | "pullRequest.conflicted"
            | "pullRequest.merged"
            | "automation.paused"
            | "automation.silent";
          email?: "off" | "mine" | "all";
          push?: "off" | "mine" | "all";
        },
        {
          kind:
            | "session.completed"
            | "session.failed"
            | "session.waiting"
            | "pullRequest.opened"
            | "pullRequest.conflicted"
            | "pullRequest.merged"
            | "automation.paused"
            | "automation.silent";
          email?: "off" | "mine" | "all";
          push?: "off" | "mine" | "all";
        },
        {
          kind:
            | "session.completed"
            | "session.failed"
            | "session.waiting"
            | "pullRequest.opened"
            | "pullRequest.conflicted"
            | "pullRequest.merged"
            | "automation.paused"
            | "automation.silent";
          email?: "off" | "mine" | "all";
          push?: "off" | "mine" | "all";
        },
        {
          kind:
            | "session.completed"
            | "session.failed"
            | "session.waiting"
            | "pullRequest.opened"
            | "pullRequest.conflicted"
            | "pullRequest.merged"
            | "automation.paused"
            | "automation.silent";
          email?: "off" | "mine" | "all";
          push?: "off" | "mine" | "all";
        }
      ]
    | [
        {
          kind:
            | "session.completed"
            | "session.failed"
            | "session.waiting"
            | "pullRequest.opened"
            | "pullRequest.conflicted"
            | "pullRequest.merged"
            | "automation.paused"
            | "automation.silent";
          email?: "off" | "mine" | "all";
          push?: "off" | "mine" | "all";
        },
        {
          kind:
            | "session.completed"
            | "session.failed"
            | "session.waiting"
            | "pullRequest.opened"
            | "pullRequest.conflicted"
            | "pullRequest.merged"
            | "automation.paused"
            | "automation.silent";
          email?: "off" | "mine" | "all";
          push?: "off" | "mine" | "all";
        },
        {
          kind:
            | "session.completed"
            | "session.failed"
            | "session.waiting"
            | "pullRequest.opened"
            | "pullRequest.conflicted"
            | "pullRequest.merged"
            | "automation.paused"
            | "automation.silent";
          email?: "off" | "mine" | "all";
          push?: "off" | "mine" | "all";
        },
        {
          kind:
            | "session.completed"
            | "session.failed"
            | "session.waiting"
            | "pullRequest.opened"
            | "pullRequest.conflicted"
            | "pullRequest.merged"
            | "automation.paused"
            | "automation.silent";
          email?: "off" | "mine" | "all";
          push?: "off" | "mine" | "all";
        },
        {
          kind:
            | "session.completed"
            | "session.failed"
            | "session.waiting"
            | "pullRequest.opened"
            | "pullRequest.conflicted"
            | "pullRequest.merged"
            | "automation.paused"
            | "automation.silent";
          email?: "off" | "mine" | "all";
          push?: "off" | "mine" | "all";
        },
        {
          kind:
            | "session.completed"
            | "session.failed"
            | "session.waiting"
            | "pullRequest.opened"
            | "pullRequest.conflicted"
            | "pullRequest.merged"
            | "automation.paused"
            | "automation.silent";
          email?: "off" | "mine" | "all";
          push?: "off" | "mine" | "all";
        },
        {
          kind:
            | "session.completed"
            | "session.failed"
            | "session.waiting"
            | "pullRequest.opened"
            | "pullRequest.conflicted"
            | "pullRequest.merged"
            | "automation.paused"
            | "automation.silent";
          email?: "off" | "mine" | "all";
          push?: "off" | "mine" | "all";
        },
        {
          kind:
            | "session.completed"
            | "session.failed"
            | "session.waiting"
            | "pullRequest.opened"
            | "pullRequest.conflicted"
            | "pullRequest.merged"
            | "automation.paused"
            | "automation.silent";
          email?: "off" | "mine" | "all";
          push?: "off" | "mine" | "all";
        }
      ];
}
export interface NoticeTestAnswer {
  deliveries: number;
}
export interface SubscriptionCreateBody {
  endpoint: string;
  keys: {
    p256dh: string;
    auth: string;
  };
  /**
   * 32 random bytes in base64url, which the browser keeps: with it, it tells its new address once it has another.
   */
  renewalSecret?: string;
}
export interface SubscriptionCreateAnswer {
  id: string;
  /**
   * Of the browser's push service.
   */
  host: string;
  userAgent: string | null;
  createdAt: string;
  /**
   * When it last took a notice.
   */
  sentAt: string | null;
}
export interface SubscriptionRenewBody {
  endpoint: string;
  keys: {
    p256dh: string;
    auth: string;
  };
  renewalSecret: string;
}
export interface SubscriptionListAnswer {
  subscriptions: SubscriptionCreateAnswer[];
  nextCursor: string | null;
}
export interface SessionUnreadAnswer {
  count: number;
  more: boolean;
}
export interface SessionReadAnswer {}
export interface SessionReadAllAnswer {}
export interface ConnectionGithubAppStartBody {
  /**
   * Default: the address's host.
   */
  name?: string;
  /**
   * The forge's address, or that of one owner on it (`https://github.com/acme`): the longest that fits a repository counts. Default: the public server of the kind.
   */
  webUrl?: string;
  /**
   * Default: where the kind has its API.
   */
  apiUrl?: string;
  /**
   * The organization at GitHub that gets the App. Default: the person's own account.
   */
  account?: string;
}
export interface ConnectionGithubAppStartAnswer {
  /**
   * Page of this server whose form leads to GitHub.
   */
  formUrl: string;
  /**
   * Where the form with the field `manifest` is posted to.
   */
  action: string;
  manifest: {
    [k: string]: unknown;
  };
  state: string;
}
export interface KeyCreateBody {
  name: string;
  /**
   * Default read and write.
   *
   * @minItems 1
   */
  scopes?: ["trigger" | "read" | "write" | "admin", ...("trigger" | "read" | "write" | "admin")[]];
  /**
   * Instead of scopes.
   */
  role?: "admin" | "member" | "viewer";
  /**
   * Automations that a key of the scope trigger may start; omitted or null: all.
   */
  automationIds?: [string, ...string[]] | null;
  expiresAt?: string | null;
}
export interface KeyCreateAnswer {
  id: string;
  name: string;
  prefix: string;
  scopes: ("trigger" | "read" | "write" | "admin")[];
  automationIds: string[] | null;
  createdAt: string;
  expiresAt: string | null;
  revokedAt: string | null;
  lastUsedAt: string | null;
  owner: {
    id: string;
    name: string;
  } | null;
  key: string;
}
export interface KeyListAnswer {
  keys: KeyRevokeAnswer[];
  nextCursor: string | null;
}
export interface KeyRevokeAnswer {
  id: string;
  name: string;
  prefix: string;
  scopes: ("trigger" | "read" | "write" | "admin")[];
  automationIds: string[] | null;
  createdAt: string;
  expiresAt: string | null;
  revokedAt: string | null;
  lastUsedAt: string | null;
  owner: {
    id: string;
    name: string;
  } | null;
}
export interface LoginCreateAnswer {
  organizationId: string;
}
export interface LoginDeleteAnswer {}
export interface LoginSwitchBody {
  organizationId: string;
}
export interface LoginListAnswer {
  logins: LoginRevokeAnswer[];
  nextCursor: string | null;
}
export interface LoginRevokeAnswer {
  id: string;
  by: "user" | "key" | "link";
  userId: string | null;
  keyId: string | null;
  name: string | null;
  current: boolean;
  address: string | null;
  userAgent: string | null;
  createdAt: string;
  lastUsedAt: string | null;
  expiresAt: string;
}
export interface LoginMethodsAnswer {
  methods: {
    id: "oidc" | "github";
    name: string;
  }[];
}
export interface OauthRequestAnswer {
  clientName: string;
  clientHost: string | null;
  redirectHost: string;
  isLocal: boolean;
  resource: "api" | "mcp";
  scopes: ("trigger" | "read" | "write" | "admin")[];
}
export interface OauthRequestDecideBody {
  allow: boolean;
}
export interface OauthRequestDecideAnswer {
  redirectUrl: string;
}
export interface NoticeUnsubscribeQuery {
  token: string;
}
export interface NoticeUnsubscribeAnswer {
  kind:
    | "session.completed"
    | "session.failed"
    | "session.waiting"
    | "pullRequest.opened"
    | "pullRequest.conflicted"
    | "pullRequest.merged"
    | "automation.paused"
    | "automation.silent";
}
export interface GrantListAnswer {
  grants: GrantRevokeAnswer[];
  nextCursor: string | null;
}
export interface GrantRevokeAnswer {
  id: string;
  clientId: string;
  clientName: string;
  by: "user" | "key" | "link";
  userId: string | null;
  keyId: string | null;
  name: string | null;
  scopes: ("trigger" | "read" | "write" | "admin")[];
  resource: "api" | "mcp";
  address: string | null;
  createdAt: string;
  lastUsedAt: string | null;
  expiresAt: string;
}
export interface UserInviteBody {
  name: string;
  /**
   * Whoever an identity provider says has this address signs in as the person invited. The link is mailed there, if the server has a mail server.
   */
  email?: string | null;
  role: "admin" | "member" | "viewer";
  /**
   * Of the mail; default en.
   */
  language?: "en" | "de";
}
export interface UserInviteUserAgainBody {
  /**
   * Of the mail; default en.
   */
  language?: "en" | "de";
}
export interface UserListAnswer {
  users: UserUpdateAnswer[];
  nextCursor: string | null;
}
export interface UserUpdateBody {
  role?: "admin" | "member" | "viewer";
  /**
   * true signs the user out of every browser.
   */
  disabled?: boolean;
}
export interface AuditListQuery {
  /**
   * 1 to 100, default 20
   */
  limit?: number;
  /**
   * nextCursor of the previous page
   */
  cursor?: string;
  action?: string;
  outcome?: "allowed" | "refused" | "failed";
}
export interface AuditListAnswer {
  entries: {
    id: string;
    actor: "key" | "user" | "browser" | "command" | "nobody";
    keyId: string | null;
    keyName: string | null;
    userId: string | null;
    userName: string | null;
    action: string;
    target: string | null;
    outcome: "allowed" | "refused" | "failed";
    status: number;
    address: string | null;
    requestId: string | null;
    createdAt: string;
  }[];
  nextCursor: string | null;
}
export interface WebhookCreateBody {
  url: string;
  /**
   * Default: all.
   */
  events?: (
    | "session.draft"
    | "session.queued"
    | "session.running"
    | "session.waiting"
    | "session.completed"
    | "session.failed"
    | "session.cancelled"
    | "job.pending"
    | "job.running"
    | "job.completed"
    | "job.failed"
    | "job.cancelled"
    | "pullRequest.opened"
    | "pullRequest.merged"
    | "pullRequest.closed"
    | "pullRequest.conflicted"
    | "automation.paused"
    | "automation.silent"
    | "automation.recovered"
  )[];
}
export interface WebhookCreateAnswer {
  id: string;
  url: string;
  /**
   * Those of creation; a newer Offstage may have more. Empty: all.
   */
  events: string[];
  enabled: boolean;
  /**
   * Why Offstage disabled it.
   */
  disabledReason: string | null;
  createdAt: string;
  updatedAt: string;
  /**
   * Signs deliveries. Never shown again.
   */
  secret: string;
}
export interface WebhookListAnswer {
  webhooks: WebhookGetAnswer[];
  nextCursor: string | null;
}
export interface WebhookGetAnswer {
  id: string;
  url: string;
  /**
   * Those of creation; a newer Offstage may have more. Empty: all.
   */
  events: string[];
  enabled: boolean;
  /**
   * Why Offstage disabled it.
   */
  disabledReason: string | null;
  createdAt: string;
  updatedAt: string;
}
export interface WebhookUpdateBody {
  url?: string;
  events?: (
    | "session.draft"
    | "session.queued"
    | "session.running"
    | "session.waiting"
    | "session.completed"
    | "session.failed"
    | "session.cancelled"
    | "job.pending"
    | "job.running"
    | "job.completed"
    | "job.failed"
    | "job.cancelled"
    | "pullRequest.opened"
    | "pullRequest.merged"
    | "pullRequest.closed"
    | "pullRequest.conflicted"
    | "automation.paused"
    | "automation.silent"
    | "automation.recovered"
  )[];
  enabled?: boolean;
}
export interface DeliveryListQuery {
  /**
   * 1 to 100, default 20
   */
  limit?: number;
  /**
   * nextCursor of the previous page
   */
  cursor?: string;
  webhookId?: string;
  status?: "pending" | "delivered" | "dead";
}
export interface DeliveryListAnswer {
  deliveries: {
    /**
     * The header webhook-id; the same for every attempt.
     */
    id: string;
    webhookId: string;
    type: string;
    status: "pending" | "delivered" | "dead";
    attempts: number;
    nextAttemptAt: string | null;
    createdAt: string;
    updatedAt: string;
  }[];
  nextCursor: string | null;
}
export interface DeliveryGetAnswer {
  /**
   * The header webhook-id; the same for every attempt.
   */
  id: string;
  webhookId: string;
  type: string;
  status: "pending" | "delivered" | "dead";
  attempts: number;
  nextAttemptAt: string | null;
  createdAt: string;
  updatedAt: string;
  data: {
    [k: string]: unknown;
  };
  log: {
    at: string;
    durationMs: number;
    /**
     * HTTP status of the answer.
     */
    status: number | null;
    error: string | null;
  }[];
}
export interface AgentListAnswer {
  agents: {
    id: string;
    name: string;
    available: boolean;
    problem: string | null;
    defaultModel: string | null;
    reasoningLevels: string[];
    isDefault: boolean;
  }[];
  nextCursor: null;
}
export interface MeGetAnswer {
  orgId: string | null;
  /**
   * The person who is signed in, or whose the key is; null: nobody in particular.
   */
  userId: string | null;
  /**
   * Everything that the caller may do, included scopes too.
   */
  scopes: ("trigger" | "read" | "write" | "admin")[];
  /**
   * Whether the caller looks after the whole server: an admin of the organization `default`.
   */
  isServerAdmin: boolean;
  /**
   * Organizations that this browser can switch between, the present one included; none unless an identity provider signed it in.
   */
  organizations: {
    id: string;
    name: string;
    /**
     * Of the person there.
     */
    role: "admin" | "member" | "viewer";
  }[];
}
export interface SystemHealthAnswer {
  checkedAt: string;
  /**
   * The worst first; empty: nothing is wrong.
   */
  problems: {
    code:
      | "no_worker"
      | "worker_not_seen"
      | "no_agent"
      | "disk_full"
      | "disk_nearly_full"
      | "worker_disk_full"
      | "worker_disk_nearly_full"
      | "worker_version"
      | "sessions_wait"
      | "jobs_wait"
      | "deliveries_wait"
      | "database_newer";
    /**
     * `bad`: work stands still. `warn`: it soon may, or is slow.
     */
    severity: "bad" | "warn";
    what: string;
    remedy: string;
  }[];
  server: {
    /**
     * Of Offstage.
     */
    version: string;
    nodeVersion: string;
    startedAt: string;
    /**
     * Of its data folder.
     */
    disk: {
      freeBytes: number;
      totalBytes: number;
      /**
       * OFFSTAGE_MIN_FREE_MB: with less free a worker takes no session.
       */
      neededBytes: number;
    };
    /**
     * The worker in the same process; null: it runs no sessions.
     */
    workerId: string | null;
  };
  /**
   * The oldest first, 500 at most.
   */
  workers: {
    id: string;
    /**
     * When it was first listed since it last stopped in order.
     */
    startedAt: string;
    /**
     * Its last heartbeat.
     */
    seenAt: string;
    /**
     * Whether that is less than 45 s ago, and its sessions were not found without it since.
     */
    isSeen: boolean;
    /**
     * Sessions that it runs at once.
     */
    concurrency: number;
    runningSessions: number;
    runningJobs: number;
    defaultAgent: string | null;
    /**
     * Names of the agents that it can run.
     */
    agents: string[];
    /**
     * Sandboxes that it keeps ready for sessions to come.
     */
    warmSandboxes: number;
    /**
     * As its last heartbeat had it; null: it did not say, as a worker of a version before.
     */
    machine: {
      /**
       * Of Offstage.
       */
      version: string;
      nodeVersion: string;
      /**
       * Of its process.
       */
      startedAt: string;
      disk: {
        freeBytes: number;
        totalBytes: number;
        /**
         * OFFSTAGE_MIN_FREE_MB: with less free a worker takes no session.
         */
        neededBytes: number;
      };
      /**
       * Repositories of which it keeps a mirror on that disk.
       */
      mirrors: number;
    } | null;
  }[];
  queue: {
    sessions: {
      queued: number;
      running: number;
      waiting: number;
    };
    retries: {
      /**
       * Queued sessions whose time of a retry has come, and that no worker has put back yet.
       */
      due: number;
      /**
       * Those that are tried again later. All are among the queued.
       */
      later: number;
      nextAt: string | null;
    };
    jobs: {
      pending: number;
      running: number;
    };
    deliveries: {
      due: number;
      later: number;
    };
    oldestWaitSeconds: {
      /**
       * Since the oldest session was queued that could run now; 0: none waits.
       */
      sessions: number;
      /**
       * The same of jobs.
       */
      jobs: number;
      /**
       * Since the oldest delivery to a webhook was due.
       */
      deliveries: number;
    };
  };
  database: {
    /**
     * Of PostgreSQL.
     */
    version: string;
    /**
     * Its size on disk, read once a minute.
     */
    bytes: number;
    /**
     * The last one.
     */
    migration: {
      number: number;
      name: string;
      ranAt: string;
    };
    /**
     * How many were run.
     */
    migrations: number;
    /**
     * How many of them the answering server does not know: a newer Offstage uses the database, too.
     */
    unknownMigrations: number;
  };
}
export interface TaskListQuery {
  limit?: number;
  page?: number;
}
export interface TaskListAnswer {
  issues: SessionCreateAnswer[];
  meta: {
    currentPage: number;
    pageSize: number;
    totalCount: number;
    totalPages: number;
    hasNext: boolean;
    hasPrevious: boolean;
  };
}
export interface TaskSearchQuery {
  limit?: number;
  page?: number;
  q: string;
}
export interface TaskSearchAnswer {
  issues: SessionCreateAnswer[];
  meta: {
    currentPage: number;
    pageSize: number;
    totalCount: number;
    totalPages: number;
    hasNext: boolean;
    hasPrevious: boolean;
  };
  query: string;
}
/**
 * What a webhook delivers: docs/webhooks.md.
 */
export interface WebhookEvent {
  /**
   * Such as `session.completed`.
   */
  type: string;
  timestamp: string;
  data: {
    [k: string]: unknown;
  };
}
export type SessionSearchAnswer = SessionListAnswer;
export type SessionQueueAnswer = SessionGetAnswer;
export type SessionCancelAnswer = SessionGetAnswer;
export type SessionStopAnswer = SessionGetAnswer;
export type SessionMessageAnswer = SessionGetAnswer;
export type SessionMessagesAnswer = SessionGetAnswer;
export type SessionResolveConflictsAnswer = SessionGetAnswer;
export type SessionBudgetAnswer = SessionGetAnswer;
export type SessionLabelsAnswer = SessionGetAnswer;
export type SessionArchiveAnswer = SessionGetAnswer;
export type SessionUnarchiveAnswer = SessionGetAnswer;
export type SessionMessageWithdrawAnswer = SessionGetAnswer;
export type SessionShareListQuery = SessionMessageListQuery;
export type ShareListQuery = SessionMessageListQuery;
export type SessionAnswerListQuery = SessionMessageListQuery;
export type AutomationCreateAnswer = AutomationGetAnswer;
export type AutomationListQuery = SessionMessageListQuery;
export type AutomationUpdateAnswer = AutomationGetAnswer;
export type AutomationDeleteAnswer = AutomationGetAnswer;
export type AutomationRunsQuery = SessionMessageListQuery;
export type AutomationStateUpdateAnswer = AutomationStateAnswer;
export type AgentTriggerAnswer = AutomationTriggerAnswer;
export type JobListQuery = SessionMessageListQuery;
export type JobCancelAnswer = JobGetAnswer;
export type RepositoryCreateAnswer = RepositoryGetAnswer;
export type RepositoryListQuery = SessionMessageListQuery;
export type RepositoryUpdateAnswer = RepositoryGetAnswer;
export type RepositoryDeleteAnswer = RepositoryGetAnswer;
export type RepositoryTrySetupAnswer = SessionCreateAnswer;
export type RepositorySetAutomationFilesAnswer = RepositoryAutomationFilesAnswer;
export type RepositoryUpdateEnvironmentAnswer = RepositoryEnvironmentAnswer;
export type RepositorySetLimitsAnswer = RepositoryLimitsAnswer;
export type RepositorySetAllowedFindingsAnswer = RepositoryFindingsAnswer;
export type RepositoryAllowFindingAnswer = RepositoryFindingsAnswer;
export type OrganizationUpdateAnswer = OrganizationGetAnswer;
export type OrganizationListQuery = SessionMessageListQuery;
export type OrganizationEraseOrganizationAnswer = OrganizationEraseAnswer;
export type SecretUpdateAnswer = SecretCreateAnswer;
export type SecretDeleteAnswer = SecretCreateAnswer;
export type RegistryListQuery = SessionMessageListQuery;
export type RegistryUpdateAnswer = RegistryCreateAnswer;
export type RegistryDeleteAnswer = RegistryCreateAnswer;
export type ConnectionListQuery = SessionMessageListQuery;
export type ConnectionUpdateAnswer = ConnectionGetAnswer;
export type ConnectionCheckAnswer = ConnectionGetAnswer;
export type ConnectionRotateSecretAnswer = ConnectionCreateAnswer;
export type AccountCreateAnswer = AccountGetAnswer;
export type AccountListQuery = SessionMessageListQuery;
export type AccountUpdateAnswer = AccountGetAnswer;
export type AccountCheckAnswer = AccountGetAnswer;
export type AccountDeleteAnswer = AccountGetAnswer;
export type InsightCsvQuery = InsightFiguresQuery;
export type NoticeSettingsUpdateAnswer = NoticeSettingsAnswer;
export type SubscriptionRenewAnswer = SubscriptionCreateAnswer;
export type SubscriptionListQuery = SessionMessageListQuery;
export type SubscriptionDeleteAnswer = SubscriptionCreateAnswer;
export type KeyListQuery = SessionMessageListQuery;
export type LoginSwitchAnswer = LoginCreateAnswer;
export type LoginListQuery = SessionMessageListQuery;
export type GrantListQuery = SessionMessageListQuery;
export type UserInviteUserAgainAnswer = UserInviteAnswer;
export type UserListQuery = SessionMessageListQuery;
export type UserEraseAnswer = UserUpdateAnswer;
export type WebhookListQuery = SessionMessageListQuery;
export type WebhookUpdateAnswer = WebhookGetAnswer;
export type WebhookRotateAnswer = WebhookCreateAnswer;
export type WebhookDeleteAnswer = WebhookGetAnswer;
export type WebhookTestAnswer = DeliveryGetAnswer;
export type DeliveryResendAnswer = DeliveryGetAnswer;
export type TaskCreateBody = SessionCreateBody;
export type TaskCreateAnswer = SessionCreateAnswer;
