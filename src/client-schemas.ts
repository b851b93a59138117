import { z } from "zod";
import { answerSchema } from "./domain/answers/answer.ts";
import { automationSchema } from "./domain/automations/automation.ts";
import { jobSchema, queuedJobSchema } from "./domain/automations/job.ts";
import { ledgerEntrySchema } from "./domain/automations/ledger.ts";
import { receivedSchema } from "./domain/automations/trigger.ts";
import { registrySchema } from "./domain/environments/registry.ts";
import { secretSchema } from "./domain/environments/secret.ts";
import { pageSchema } from "./domain/fields/list.ts";
import { subscriptionSchema } from "./domain/notices/notice.ts";
import { accountSchema } from "./domain/people/account.ts";
import { auditEntrySchema } from "./domain/people/audit.ts";
import { keySchema } from "./domain/people/key.ts";
import { grantSchema } from "./domain/people/grant.ts";
import { loginSchema } from "./domain/people/login.ts";
import { listedOrganizationSchema } from "./domain/people/organization.ts";
import { userSchema } from "./domain/people/user.ts";
import { connectionSchema } from "./domain/repositories/connection.ts";
import { allowedFindingSchema } from "./domain/repositories/finding.ts";
import { repositorySchema } from "./domain/repositories/repository.ts";
import { messageSchema } from "./domain/sessions/message.ts";
import { sessionDetailSchema } from "./domain/sessions/session.ts";
import { listedShareSchema, shareSchema } from "./domain/sessions/share.ts";
import { deliverySchema, webhookSchema } from "./domain/webhooks/webhook.ts";

// The form of each answer of the API, by the names that src/client.ts knows them by: a separate module, so that the web
// app loads it during its first request and not before its first picture. Each `…Page` is the answer of that noun's
// list.

export { agentListSchema } from "./domain/agents/agent.ts";
export { automationFilesSchema, automationTemplatesSchema } from "./domain/automations/automation-file.ts";
export { automationPreviewSchema, automationSchema } from "./domain/automations/automation.ts";
export { jobSchema, queuedJobSchema } from "./domain/automations/job.ts";
export { previewSchema } from "./domain/automations/preview.ts";
export { ledgerEntrySchema } from "./domain/automations/ledger.ts";
export { environmentSchema } from "./domain/environments/environment.ts";
export { registrySchema } from "./domain/environments/registry.ts";
export { secretSchema } from "./domain/environments/secret.ts";
export { insightSchema } from "./domain/insight/insight.ts";
export { noticeSettingsSchema, subscriptionSchema } from "./domain/notices/notice.ts";
export { accountSchema } from "./domain/people/account.ts";
export { createdKeySchema, keySchema } from "./domain/people/key.ts";
export { consentSchema, grantSchema } from "./domain/people/grant.ts";
export { loginSchema } from "./domain/people/login.ts";
export { meSchema } from "./domain/people/me.ts";
export {
  createdOrganizationSchema,
  listedOrganizationSchema,
  organizationSchema,
} from "./domain/people/organization.ts";
export { stateSchema } from "./domain/automations/state.ts";
export { triggerSchema } from "./domain/automations/trigger.ts";
export { invitationSchema } from "./domain/people/invitation.ts";
export { userSchema } from "./domain/people/user.ts";
export { offeredBranchesSchema, offeredFilesSchema, offeredRepositoriesSchema } from "./domain/repositories/choice.ts";
export {
  connectionSchema,
  connectionWithSecretSchema,
  deletedConnectionSchema,
} from "./domain/repositories/connection.ts";
export { repositoryLimitsSchema, repositorySchema } from "./domain/repositories/repository.ts";
export { eventPageSchema, sessionEventSchema } from "./domain/sessions/event.ts";
export { labelPageSchema } from "./domain/sessions/labels.ts";
export { sessionDetailSchema, sessionDiffSchema, sessionSchema } from "./domain/sessions/session.ts";
export { createdShareSchema, shareSchema } from "./domain/sessions/share.ts";
export { workspaceFileSchema, workspaceFolderSchema } from "./domain/sessions/workspace-file.ts";
export { systemHealthSchema } from "./domain/system/health.ts";
export { createdWebhookSchema, deliveryDetailSchema, webhookSchema } from "./domain/webhooks/webhook.ts";

/** Of a ledger's entry that was replayed: a job, or the outcome of its event. */
export const replayedSchema = z.union([queuedJobSchema, receivedSchema]);
export const subscriptionsPage = pageSchema("subscriptions", subscriptionSchema);
export const testedNoticesSchema = z.object({ deliveries: z.number().int() });
export const unreadSchema = z.object({ count: z.number().int(), more: z.boolean() });
export const messagesPage = pageSchema("messages", messageSchema);
export const sessionsPage = pageSchema("sessions", sessionDetailSchema);
export const repositoriesPage = pageSchema("codeRepositories", repositorySchema);
export const connectionsPage = pageSchema("connections", connectionSchema);
export const accountsPage = pageSchema("accounts", accountSchema);
export const registriesPage = pageSchema("registries", registrySchema);
export const secretsPage = pageSchema("secrets", secretSchema);
export const keysPage = pageSchema("keys", keySchema);
export const loginsPage = pageSchema("logins", loginSchema);
export const grantsPage = pageSchema("grants", grantSchema);
export const redirectSchema = z.object({ redirectUrl: z.url() });
export const listedOrganizationsPage = pageSchema("organizations", listedOrganizationSchema);
export const usersPage = pageSchema("users", userSchema);
export const signInMethods = z.object({ methods: z.array(z.object({ id: z.string(), name: z.string() })) });
export const auditPage = pageSchema("entries", auditEntrySchema);
export const automationsPage = pageSchema("automations", automationSchema);
export const runsPage = pageSchema("runs", jobSchema);
export const ledgerPage = pageSchema("entries", ledgerEntrySchema);
export const webhooksPage = pageSchema("webhooks", webhookSchema);
export const deliveriesPage = pageSchema("deliveries", deliverySchema);
export const sharesPage = pageSchema("shares", shareSchema);
export const listedSharesPage = pageSchema("shares", listedShareSchema);
export const answersPage = pageSchema("answers", answerSchema);
export const egressSchema = z.object({ egress: z.array(z.string()) });
export const findingsSchema = z.object({ allowedFindings: z.array(allowedFindingSchema) });
export const githubAppFormSchema = z.object({ formUrl: z.string() });
export const signedInSchema = z.object({ organizationId: z.string() });
export const emptySchema = z.object({});
/** A deleted session, as a stream reports it. */
export const deletedSchema = z.object({ id: z.string() });
/** The fields of every event, also of a newer server's. */
export const numberedSchema = z.object({ seq: z.number().int() });
