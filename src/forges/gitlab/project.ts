/** Fields used of a project (https://docs.gitlab.com/api/projects/#retrieve-a-project). */
export interface Project {
  readonly id: number;
  readonly path_with_namespace: string;
  readonly archived?: boolean;
  /** Set once its deletion is planned: from then on it is read-only. */
  readonly marked_for_deletion_on?: string | null;
  readonly repository_access_level?: FeatureAccess;
  readonly merge_requests_access_level?: FeatureAccess;
  readonly forking_access_level?: FeatureAccess;
  readonly permissions?: { readonly project_access: Membership | null; readonly group_access: Membership | null };
  readonly import_status?: string;
  readonly import_error?: string | null;
  readonly forked_from_project?: { readonly path_with_namespace?: string } | null;
}

/** Who may use a part of a project. */
type FeatureAccess = "disabled" | "private" | "enabled";

interface Membership {
  readonly access_level: number;
}

/** Fields used of a protected branch (https://docs.gitlab.com/api/protected_branches/). */
export interface ProtectedBranch {
  /** A branch, or a pattern with `*`. */
  readonly name: string;
  readonly push_access_levels?: readonly PushAccess[];
}

interface PushAccess {
  /** The role that may push, 0 for none; meaningless in an entry for one user, group or key. */
  readonly access_level: number | null;
  readonly user_id?: number | null;
  readonly group_id?: number | null;
  readonly deploy_key_id?: number | null;
}
