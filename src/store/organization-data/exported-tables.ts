/** How one table stands in an export. */
export interface ExportedTable {
  readonly table: string;
  /** Columns as they are, each named in camel case. */
  readonly columns: readonly string[];
  /** Further fields, as SQL expressions by their name. */
  readonly computed?: Readonly<Record<string, string>>;
  /** The order in which rows are read; with what belongs to one session, within the session. */
  readonly order: readonly { readonly column: string; readonly type: string }[];
  /** Columns that are in no export, each with the reason. */
  readonly leftOut: Readonly<Record<string, string>>;
}

const byTime = [
  { column: "created_at", type: "timestamptz" },
  { column: "id", type: "uuid" },
] as const;
const sealed = { sealed: "a secret", master_key: "says which key sealed the secret" } as const;
const ofWorkers = "of this installation's workers, not of the organization's work";

/** The organization's own tables, which are read first, each in the order of creation. */
export const organizationTables: readonly ExportedTable[] = [
  {
    table: "user_account",
    columns: ["id", "issuer", "subject", "email", "name", "role", "created_at", "last_sign_in_at", "disabled_at"],
    order: byTime,
    leftOut: { organization_id: "in the manifest" },
  },
  {
    table: "api_key",
    columns: [
      "id",
      "name",
      "prefix",
      "scopes",
      "automation_ids",
      "user_id",
      "created_at",
      "expires_at",
      "revoked_at",
      "last_used_at",
    ],
    order: byTime,
    leftOut: { organization_id: "in the manifest", hash: "the key's hash" },
  },
  {
    table: "repository",
    columns: [
      "id",
      "name",
      "url",
      "branch",
      "description",
      "egress",
      "setup_script",
      "variables",
      "sparse",
      "max_running_sessions",
      "enabled_at",
      "created_at",
      "updated_at",
      "deleted_at",
    ],
    order: byTime,
    leftOut: {
      organization_id: "in the manifest",
      address_key: "follows from the url",
      allowed_findings: "fingerprints of texts that look like secrets",
    },
  },
  {
    table: "secret",
    columns: ["id", "repository_id", "name", "phases", "created_at", "updated_at"],
    order: byTime,
    leftOut: { organization_id: "in the manifest", ...sealed },
  },
  {
    table: "registry",
    columns: ["id", "kind", "url", "scope", "username", "created_at", "updated_at"],
    order: byTime,
    leftOut: { organization_id: "in the manifest", ...sealed },
  },
  {
    table: "forge_connection",
    columns: [
      "id",
      "kind",
      "name",
      "web_url",
      "api_url",
      "credential",
      "account",
      "install_url",
      "state",
      "problems",
      "checked_at",
      "previous_secret_until",
      "created_at",
      "updated_at",
      "deleted_at",
    ],
    order: byTime,
    leftOut: { organization_id: "in the manifest", next_check_at: ofWorkers, ...sealed },
  },
  {
    table: "webhook",
    columns: ["id", "events", "enabled", "disabled_reason", "created_at", "updated_at"],
    computed: { host: "substring(url from '^[a-z]+://(?:[^/?#]*@)?([^/?#@]*)')" },
    order: byTime,
    leftOut: { organization_id: "in the manifest", url: "often a credential in itself: its host is there", ...sealed },
  },
  {
    table: "webhook_delivery",
    columns: ["id", "webhook_id", "type", "data", "status", "created_at", "updated_at"],
    computed: {
      attempts: `(select coalesce(json_agg(json_build_object('at', made.at, 'durationMs', made.duration_ms,
        'status', made.status, 'error', made.error) order by made.at), '[]')
        from webhook_attempt made where made.delivery_id = webhook_delivery.id)`,
    },
    order: byTime,
    leftOut: {
      organization_id: "in the manifest",
      attempts: "those made are listed instead",
      next_attempt_at: ofWorkers,
    },
  },
  {
    table: "automation",
    columns: [
      "id",
      "name",
      "macro",
      "instructions",
      "title",
      "agent",
      "repository_ids",
      "target_branch",
      "priority",
      "paused",
      "budget_usd",
      "created_at",
      "updated_at",
      "deleted_at",
    ],
    order: byTime,
    leftOut: { organization_id: "in the manifest" },
  },
  {
    table: "trigger",
    columns: [
      "id",
      "automation_id",
      "type",
      "position",
      "enabled",
      "condition",
      "concurrency",
      "debounce_seconds",
      "max_per_hour",
      "settings",
      "next_at",
      "problem",
      "created_at",
      "updated_at",
      "deleted_at",
    ],
    order: byTime,
    leftOut: { organization_id: "in the manifest", ...sealed },
  },
  {
    table: "job",
    columns: [
      "id",
      "automation_id",
      "task",
      "status",
      "priority",
      "payload",
      "session_id",
      "error",
      "dead",
      "replay_of",
      "trigger_id",
      "event_id",
      "concurrency_key",
      "superseded",
      "repository_ids",
      "created_at",
      "updated_at",
    ],
    order: byTime,
    leftOut: {
      organization_id: "in the manifest",
      worker: ofWorkers,
      lease_until: ofWorkers,
      attempt: ofWorkers,
      trace_parent: ofWorkers,
      holds_key: ofWorkers,
      held_until: ofWorkers,
      held_since: ofWorkers,
    },
  },
  {
    table: "arrival",
    columns: [
      "id",
      "automation_id",
      "trigger_id",
      "connection_id",
      "name",
      "delivery_id",
      "subject",
      "outcome",
      "reason",
      "decisions",
      "payload",
      "original_id",
      "created_at",
      "updated_at",
    ],
    order: byTime,
    leftOut: {
      organization_id: "in the manifest",
      content_key: "follows from the payload",
      depth: "follows from the runs before",
      root_id: "follows from the runs before",
      worker: ofWorkers,
      lease_until: ofWorkers,
      attempt: ofWorkers,
      trace_parent: ofWorkers,
    },
  },
  {
    table: "model_spend",
    columns: ["month", "spent_usd"],
    order: [{ column: "month", type: "date" }],
    leftOut: { organization_id: "in the manifest" },
  },
  {
    table: "audit_entry",
    columns: ["id", "actor", "key_id", "user_id", "action", "target", "status", "address", "request_id", "created_at"],
    order: byTime,
    leftOut: { organization_id: "in the manifest" },
  },
];

/** The sessions, and after each hundred of them what belongs to these. */
export const sessionTable: ExportedTable = {
  table: "session",
  columns: [
    "id",
    "title",
    "description",
    "prompt",
    "status",
    "agent",
    "target_branch",
    "branch_name",
    "priority",
    "automation_id",
    "job_id",
    "payload",
    "created_by",
    "requested_by",
    "sandboxed",
    "summary",
    "failure",
    "waiting",
    "retry",
    "budget_usd",
    "spent_usd",
    "last_event",
    "events_removed_through",
    "queued_at",
    "started_at",
    "finished_at",
    "created_at",
    "updated_at",
  ],
  order: byTime,
  leftOut: {
    organization_id: "in the manifest",
    harness: ofWorkers,
    cancel_requested: ofWorkers,
    worker: ofWorkers,
    lease_until: ofWorkers,
    attempt: ofWorkers,
    claims_without_progress: ofWorkers,
    reserved_usd: ofWorkers,
    ready: ofWorkers,
    workspace_worker: ofWorkers,
    trace_parent: ofWorkers,
    events_removed_at: ofWorkers,
    event_bytes: ofWorkers,
    event_bytes_at: ofWorkers,
    settled_messages: ofWorkers,
    retry_at: "in retry",
    interrupted_at: ofWorkers,
  },
};

const inSession = (column: string, type: string) => [
  { column: "session_id", type: "uuid" },
  { column, type },
];

/** What belongs to sessions. */
export const tablesOfSessions: readonly ExportedTable[] = [
  {
    table: "session_repository",
    columns: [
      "session_id",
      "position",
      "repository_id",
      "directory",
      "base_sha",
      "head_sha",
      "pushed_sha",
      "patch_truncated",
    ],
    computed: {
      diff: "case when patch <> '' then 'diffs/' || session_id || '-' || position || '.patch' end",
    },
    order: inSession("position", "integer"),
    leftOut: { patch: "a file of its own, named by diff", asked_sha: ofWorkers, asked_at: ofWorkers },
  },
  {
    table: "message",
    columns: ["session_id", "position", "id", "text", "status", "merges_target", "created_at"],
    order: inSession("position", "integer"),
    leftOut: { kept: ofWorkers },
  },
  {
    table: "session_commit",
    columns: ["session_id", "position", "sha"],
    order: [...inSession("position", "integer"), { column: "sha", type: "text" }],
    leftOut: {},
  },
  {
    table: "pull_request",
    columns: [
      "session_id",
      "id",
      "repository_id",
      "head",
      "target",
      "number",
      "url",
      "state",
      "head_sha",
      "mergeable",
      "created_at",
    ],
    order: inSession("id", "uuid"),
    leftOut: { organization_id: "in the manifest", checked_at: ofWorkers, mergeable_asked: ofWorkers },
  },
  {
    table: "checkpoint",
    columns: ["session_id", "bytes", "taken_at"],
    order: [{ column: "session_id", type: "uuid" }],
    leftOut: {
      content: "how the sealed pieces belong together",
      sealed_key: "the key of the sealed pieces",
      master_key: "says which key sealed the key",
    },
  },
];

/** The events of sessions, which are read session by session, since one can have very many. */
export const eventTable: ExportedTable = {
  table: "event",
  columns: ["session_id", "seq", "type", "data", "created_at"],
  order: inSession("seq", "bigint"),
  leftOut: {},
};

/** Tables of which nothing is in an export, each with the reason. */
export const tablesLeftOut: Readonly<Record<string, string>> = {
  received_key: "tells second deliveries apart; the ledger has both",
  browser_session: "sign-ins of browsers are credentials",
  login_link: "sign-in links are credentials",
  sign_in: "sign-ins under way are credentials",
  idempotency: "answers that are kept for a day, which may hold credentials",
  checkpoint_piece: "an agent's unfinished work, sealed: its changes are among the diffs",
  stored_object: "where sealed pieces are",
  model_hold: "budgets held back for requests under way",
  webhook_attempt: "in webhook_delivery",
  organization: "in the manifest",
  erasure: "of the installation",
  migration: "of the installation",
  sql_definition: "of the installation",
  worker_node: "of the installation",
};
