// Written by scripts/build-clients.ts from the API's description: change that, and run it.
import type {
  AccountCheckAnswer,
  AccountCreateAnswer,
  AccountCreateBody,
  AccountDeleteAnswer,
  AccountGetAnswer,
  AccountListAnswer,
  AccountListQuery,
  AccountUpdateAnswer,
  AccountUpdateBody,
  AgentListAnswer,
  AgentTriggerAnswer,
  AgentTriggerBody,
  AuditListAnswer,
  AuditListQuery,
  AutomationCreateAnswer,
  AutomationCreateBody,
  AutomationDeleteAnswer,
  AutomationGetAnswer,
  AutomationListAnswer,
  AutomationListQuery,
  AutomationPreviewAnswer,
  AutomationPreviewBody,
  AutomationPreviewDraftAnswer,
  AutomationPreviewDraftBody,
  AutomationRunsAnswer,
  AutomationRunsQuery,
  AutomationStateAnswer,
  AutomationStateUpdateAnswer,
  AutomationStateUpdateBody,
  AutomationTemplateListAnswer,
  AutomationTriggerAnswer,
  AutomationTriggerBody,
  AutomationTriggerRotateAnswer,
  AutomationUpdateAnswer,
  AutomationUpdateBody,
  ConnectionCheckAnswer,
  ConnectionCreateAnswer,
  ConnectionCreateBody,
  ConnectionDeleteAnswer,
  ConnectionGetAnswer,
  ConnectionGithubAppStartAnswer,
  ConnectionGithubAppStartBody,
  ConnectionListAnswer,
  ConnectionListQuery,
  ConnectionRotateSecretAnswer,
  ConnectionRotateSecretBody,
  ConnectionUpdateAnswer,
  ConnectionUpdateBody,
  DeliveryGetAnswer,
  DeliveryListAnswer,
  DeliveryListQuery,
  DeliveryResendAnswer,
  GrantListAnswer,
  GrantListQuery,
  GrantRevokeAnswer,
  HookDeliverAnswer,
  HookDeliverQuery,
  HookForgeAnswer,
  InsightCsvQuery,
  InsightFiguresAnswer,
  InsightFiguresQuery,
  JobCancelAnswer,
  JobGetAnswer,
  JobListAnswer,
  JobListQuery,
  KeyCreateAnswer,
  KeyCreateBody,
  KeyListAnswer,
  KeyListQuery,
  KeyRevokeAnswer,
  LabelListAnswer,
  LabelListQuery,
  LedgerGetAnswer,
  LedgerListAnswer,
  LedgerListQuery,
  LedgerReplayAnswer,
  LoginCreateAnswer,
  LoginCreateBody,
  LoginDeleteAnswer,
  LoginListAnswer,
  LoginListQuery,
  LoginMethodsAnswer,
  LoginRevokeAnswer,
  LoginSwitchAnswer,
  LoginSwitchBody,
  MeGetAnswer,
  NoticeSettingsAnswer,
  NoticeSettingsUpdateAnswer,
  NoticeSettingsUpdateBody,
  NoticeTestAnswer,
  NoticeUnsubscribeAnswer,
  NoticeUnsubscribeQuery,
  OauthRequestAnswer,
  OauthRequestDecideAnswer,
  OauthRequestDecideBody,
  OrganizationCreateAnswer,
  OrganizationCreateBody,
  OrganizationEraseAnswer,
  OrganizationEraseBody,
  OrganizationEraseOrganizationAnswer,
  OrganizationEraseOrganizationBody,
  OrganizationGetAnswer,
  OrganizationListAnswer,
  OrganizationListQuery,
  OrganizationUpdateAnswer,
  OrganizationUpdateBody,
  OrganizationUpdateOtherOrganizationAnswer,
  OrganizationUpdateOtherOrganizationBody,
  RegistryCreateAnswer,
  RegistryCreateBody,
  RegistryDeleteAnswer,
  RegistryListAnswer,
  RegistryListQuery,
  RegistryUpdateAnswer,
  RegistryUpdateBody,
  RepositoryAllowAnswer,
  RepositoryAllowBody,
  RepositoryAllowFindingAnswer,
  RepositoryAllowFindingBody,
  RepositoryAutomationFilesAnswer,
  RepositoryBranchesAnswer,
  RepositoryBranchesQuery,
  RepositoryCreateAnswer,
  RepositoryCreateBody,
  RepositoryDeleteAnswer,
  RepositoryEgressAnswer,
  RepositoryEnvironmentAnswer,
  RepositoryFilesAnswer,
  RepositoryFilesQuery,
  RepositoryFindingsAnswer,
  RepositoryGetAnswer,
  RepositoryLimitsAnswer,
  RepositoryListAnswer,
  RepositoryListQuery,
  RepositorySearchAnswer,
  RepositorySearchQuery,
  RepositorySetAllowedFindingsAnswer,
  RepositorySetAllowedFindingsBody,
  RepositorySetAutomationFilesAnswer,
  RepositorySetAutomationFilesBody,
  RepositorySetEgressAnswer,
  RepositorySetEgressBody,
  RepositorySetLimitsAnswer,
  RepositorySetLimitsBody,
  RepositoryTrySetupAnswer,
  RepositoryTrySetupBody,
  RepositoryUpdateAnswer,
  RepositoryUpdateBody,
  RepositoryUpdateEnvironmentAnswer,
  RepositoryUpdateEnvironmentBody,
  SecretCreateAnswer,
  SecretCreateBody,
  SecretDeleteAnswer,
  SecretListAnswer,
  SecretListQuery,
  SecretUpdateAnswer,
  SecretUpdateBody,
  SessionAnswerListAnswer,
  SessionAnswerListQuery,
  SessionArchiveAnswer,
  SessionBudgetAnswer,
  SessionBudgetBody,
  SessionCancelAnswer,
  SessionCreateAnswer,
  SessionCreateBody,
  SessionDeleteAnswer,
  SessionDiffAnswer,
  SessionEventsAnswer,
  SessionEventsQuery,
  SessionFileListAnswer,
  SessionFileListQuery,
  SessionFileReadAnswer,
  SessionFileReadQuery,
  SessionGetAnswer,
  SessionLabelsAnswer,
  SessionLabelsBody,
  SessionListAnswer,
  SessionListQuery,
  SessionMessageAnswer,
  SessionMessageBody,
  SessionMessageListAnswer,
  SessionMessageListQuery,
  SessionMessageWithdrawAnswer,
  SessionMessagesAnswer,
  SessionMessagesBody,
  SessionPatchQuery,
  SessionQueueAnswer,
  SessionReadAllAnswer,
  SessionReadAnswer,
  SessionResolveConflictsAnswer,
  SessionSearchAnswer,
  SessionSearchQuery,
  SessionShareCreateAnswer,
  SessionShareCreateBody,
  SessionShareListAnswer,
  SessionShareListQuery,
  SessionShareRevokeAnswer,
  SessionStopAnswer,
  SessionTranscriptAnswer,
  SessionTranscriptQuery,
  SessionUnarchiveAnswer,
  SessionUnreadAnswer,
  ShareListAnswer,
  ShareListQuery,
  SubscriptionCreateAnswer,
  SubscriptionCreateBody,
  SubscriptionDeleteAnswer,
  SubscriptionListAnswer,
  SubscriptionListQuery,
  SubscriptionRenewAnswer,
  SubscriptionRenewBody,
  SystemHealthAnswer,
  TaskCreateAnswer,
  TaskCreateBody,
  TaskListAnswer,
  TaskListQuery,
  TaskSearchAnswer,
  TaskSearchQuery,
  UserEraseAnswer,
  UserInviteAnswer,
  UserInviteBody,
  UserInviteUserAgainAnswer,
  UserInviteUserAgainBody,
  UserListAnswer,
  UserListQuery,
  UserUpdateAnswer,
  UserUpdateBody,
  WebhookCreateAnswer,
  WebhookCreateBody,
  WebhookDeleteAnswer,
  WebhookGetAnswer,
  WebhookListAnswer,
  WebhookListQuery,
  WebhookRotateAnswer,
  WebhookTestAnswer,
  WebhookUpdateAnswer,
  WebhookUpdateBody,
} from "./schema.ts";
import { readJson, type Call, type CallOptions, type Send } from "./send.ts";

/** Every operation of the API, by the nouns of their paths. */
export interface Operations {
  readonly session: {
    /** Create a session */
    create(body: SessionCreateBody, options?: CallOptions): Promise<SessionCreateAnswer>;
    /** List sessions, newest first */
    list(query?: SessionListQuery, options?: CallOptions): Promise<SessionListAnswer>;
    /** Search sessions by words */
    search(query: SessionSearchQuery, options?: CallOptions): Promise<SessionSearchAnswer>;
    /** Show a session */
    get(id: string, options?: CallOptions): Promise<SessionGetAnswer>;
    /** Start a draft, or retry a session that ended */
    queue(id: string, options?: CallOptions): Promise<SessionQueueAnswer>;
    /** Cancel a session */
    cancel(id: string, options?: CallOptions): Promise<SessionCancelAnswer>;
    /** Cancel a session (the name of published clients) */
    stop(id: string, options?: CallOptions): Promise<SessionStopAnswer>;
    /** Delete a session that is not at work, with its events, changes, checkpoints and recording */
    delete(id: string, options?: CallOptions): Promise<SessionDeleteAnswer>;
    /** Send a follow-up message */
    message(id: string, body: SessionMessageBody, options?: CallOptions): Promise<SessionMessageAnswer>;
    /** Send a follow-up message (the name of published clients) */
    messages(id: string, body: SessionMessagesBody, options?: CallOptions): Promise<SessionMessagesAnswer>;
    /** Have the target branch merged into the work branch, and conflicts resolved */
    resolveConflicts(id: string, options?: CallOptions): Promise<SessionResolveConflictsAnswer>;
    /** Set the session's budget; a session that waits for it continues */
    budget(id: string, body: SessionBudgetBody, options?: CallOptions): Promise<SessionBudgetAnswer>;
    /** A page of events; with Accept: text/event-stream, all of them as they happen */
    events(id: string, query?: SessionEventsQuery, options?: CallOptions): Promise<SessionEventsAnswer>;
    /** Show what a session changed */
    diff(id: string, options?: CallOptions): Promise<SessionDiffAnswer>;
    /** Sessions of the organization as they change, as Server-Sent Events */
    changes(options?: CallOptions): Promise<Response>;
    /** Set a session's labels, or add some and remove others */
    labels(id: string, body: SessionLabelsBody, options?: CallOptions): Promise<SessionLabelsAnswer>;
    /** Take a session that has ended out of the usual list; new work brings it back */
    archive(id: string, options?: CallOptions): Promise<SessionArchiveAnswer>;
    /** Bring an archived session back to the usual list */
    unarchive(id: string, options?: CallOptions): Promise<SessionUnarchiveAnswer>;
    /** List what the session was asked, and what of it no turn has taken yet */
    messageList(id: string, query?: SessionMessageListQuery, options?: CallOptions): Promise<SessionMessageListAnswer>;
    /** Take back a message that no turn has taken; a session that was queued for nothing else is cancelled */
    messageWithdraw(id: string, messageId: string, options?: CallOptions): Promise<SessionMessageWithdrawAnswer>;
    /** Make a link that shows the session to whoever has it, shown only in this response */
    shareCreate(id: string, body?: SessionShareCreateBody, options?: CallOptions): Promise<SessionShareCreateAnswer>;
    /** List the links that show the session */
    shareList(id: string, query?: SessionShareListQuery, options?: CallOptions): Promise<SessionShareListAnswer>;
    /** End what a link shows, at once */
    shareRevoke(id: string, shareId: string, options?: CallOptions): Promise<SessionShareRevokeAnswer>;
    /** Download what a session changed, for `git apply`: paths of several repositories begin with their folders */
    patch(id: string, query?: SessionPatchQuery, options?: CallOptions): Promise<Response>;
    /** Download what was said and done in a session */
    transcript(id: string, query?: SessionTranscriptQuery, options?: CallOptions): Promise<SessionTranscriptAnswer>;
    /** List a folder of a session's workspace, as it was when its work was last taken out of the sandbox */
    fileList(id: string, query?: SessionFileListQuery, options?: CallOptions): Promise<SessionFileListAnswer>;
    /** Read a file of a session's workspace, as it was when its work was last taken out of the sandbox */
    fileRead(id: string, query?: SessionFileReadQuery, options?: CallOptions): Promise<SessionFileReadAnswer>;
    /** What was written on forges, in Slack and in Linear because of a session, or is to be */
    answerList(id: string, query?: SessionAnswerListQuery, options?: CallOptions): Promise<SessionAnswerListAnswer>;
    /** Count your sessions that are over and that you have not looked at, up to a hundred */
    unread(options?: CallOptions): Promise<SessionUnreadAnswer>;
    /** Mark a session as looked at by you */
    read(id: string, options?: CallOptions): Promise<SessionReadAnswer>;
    /** Mark everything that is over as looked at by you */
    readAll(options?: CallOptions): Promise<SessionReadAllAnswer>;
  };
  readonly label: {
    /** List the labels that sessions have, in the order of their letters */
    list(query?: LabelListQuery, options?: CallOptions): Promise<LabelListAnswer>;
  };
  readonly share: {
    /** List the links that show any session of the organization, with its title */
    list(query?: ShareListQuery, options?: CallOptions): Promise<ShareListAnswer>;
  };
  readonly automation: {
    /** Create an automation */
    create(body: AutomationCreateBody, options?: CallOptions): Promise<AutomationCreateAnswer>;
    /** List automations */
    list(query?: AutomationListQuery, options?: CallOptions): Promise<AutomationListAnswer>;
    /** Show an automation */
    get(keyOrId: string, options?: CallOptions): Promise<AutomationGetAnswer>;
    /** Change an automation */
    update(keyOrId: string, body: AutomationUpdateBody, options?: CallOptions): Promise<AutomationUpdateAnswer>;
    /** Delete an automation */
    delete(keyOrId: string, options?: CallOptions): Promise<AutomationDeleteAnswer>;
    /** Render the instructions with a sample event, without running anything */
    preview(keyOrId: string, body: AutomationPreviewBody, options?: CallOptions): Promise<AutomationPreviewAnswer>;
    /** List the jobs of an automation */
    runs(keyOrId: string, query?: AutomationRunsQuery, options?: CallOptions): Promise<AutomationRunsAnswer>;
    /** Render a draft or a saved automation with an event and evaluate its triggers, without running anything */
    previewDraft(body: AutomationPreviewDraftBody, options?: CallOptions): Promise<AutomationPreviewDraftAnswer>;
    /** List automations to start from */
    templateList(options?: CallOptions): Promise<AutomationTemplateListAnswer>;
    /** Show what an automation's runs remember */
    state(keyOrId: string, options?: CallOptions): Promise<AutomationStateAnswer>;
    /** Change what an automation's runs remember */
    stateUpdate(keyOrId: string, body: AutomationStateUpdateBody, options?: CallOptions): Promise<AutomationStateUpdateAnswer>;
    /** Trigger an automation; the body is its event */
    trigger(keyOrId: string, body?: AutomationTriggerBody, options?: CallOptions): Promise<AutomationTriggerAnswer>;
    /** Replace a trigger's secret, or the address of a webhook that has none; the old secret counts for a day */
    triggerRotate(keyOrId: string, id: string, options?: CallOptions): Promise<AutomationTriggerRotateAnswer>;
  };
  readonly agent: {
    /** Trigger an automation; the body is its event */
    trigger(keyOrId: string, body?: AgentTriggerBody, options?: CallOptions): Promise<AgentTriggerAnswer>;
    /** List agents, whether each is available, and what it lacks */
    list(options?: CallOptions): Promise<AgentListAnswer>;
  };
  readonly hook: {
    /** Deliver an event to a trigger of type webhook or source */
    deliver(triggerId: string, query?: HookDeliverQuery, options?: CallOptions): Promise<HookDeliverAnswer>;
    /** Deliver an event of a forge to all triggers that listen to its connection */
    forge(connectionId: string, options?: CallOptions): Promise<HookForgeAnswer>;
  };
  readonly job: {
    /** List jobs */
    list(query?: JobListQuery, options?: CallOptions): Promise<JobListAnswer>;
    /** Show a job, with the session that it started or its error */
    get(id: string, options?: CallOptions): Promise<JobGetAnswer>;
    /** Cancel a run: its job, or all of its sessions that have not ended */
    cancel(id: string, options?: CallOptions): Promise<JobCancelAnswer>;
  };
  readonly ledger: {
    /** List triggers and their outcomes */
    list(query?: LedgerListQuery, options?: CallOptions): Promise<LedgerListAnswer>;
    /** Show a trigger and its outcome */
    get(id: string, options?: CallOptions): Promise<LedgerGetAnswer>;
    /** Do again what the entry is about: trigger its automation, or have all triggers that listen decide on its event */
    replay(id: string, options?: CallOptions): Promise<LedgerReplayAnswer>;
  };
  readonly repository: {
    /** Connect a repository */
    create(body: RepositoryCreateBody, options?: CallOptions): Promise<RepositoryCreateAnswer>;
    /** List repositories */
    list(query?: RepositoryListQuery, options?: CallOptions): Promise<RepositoryListAnswer>;
    /** Show a repository */
    get(id: string, options?: CallOptions): Promise<RepositoryGetAnswer>;
    /** Change a repository */
    update(id: string, body: RepositoryUpdateBody, options?: CallOptions): Promise<RepositoryUpdateAnswer>;
    /** Disconnect a repository: its secrets and the automations of its files are deleted, its other settings are there when it is connected again */
    delete(id: string, options?: CallOptions): Promise<RepositoryDeleteAnswer>;
    /** Search the repositories that the organization's forges show, connected or not */
    search(query?: RepositorySearchQuery, options?: CallOptions): Promise<RepositorySearchAnswer>;
    /** Search the branches of a repository, connected or not */
    branches(query: RepositoryBranchesQuery, options?: CallOptions): Promise<RepositoryBranchesAnswer>;
    /** Search the files of a repository at a branch, connected or not */
    files(query: RepositoryFilesQuery, options?: CallOptions): Promise<RepositoryFilesAnswer>;
    /** Run a repository's setup in a sandbox, as a session without an agent that costs nothing */
    trySetup(id: string, body: RepositoryTrySetupBody, options?: CallOptions): Promise<RepositoryTrySetupAnswer>;
    /** Show whether a repository's automations are read from its files, and what came of each */
    automationFiles(id: string, options?: CallOptions): Promise<RepositoryAutomationFilesAnswer>;
    /** Read a repository's automations from its files, or no longer, which deletes them */
    setAutomationFiles(id: string, body: RepositorySetAutomationFilesBody, options?: CallOptions): Promise<RepositorySetAutomationFilesAnswer>;
    /** Show which hosts a repository's sandboxes may reach */
    egress(id: string, options?: CallOptions): Promise<RepositoryEgressAnswer>;
    /** Set which hosts a repository's sandboxes may reach */
    setEgress(id: string, body: RepositorySetEgressBody, options?: CallOptions): Promise<RepositorySetEgressAnswer>;
    /** Let a repository's sandboxes reach one more host */
    allow(id: string, body: RepositoryAllowBody, options?: CallOptions): Promise<RepositoryAllowAnswer>;
    /** Show a repository's setup script, variables and sparse checkout */
    environment(id: string, options?: CallOptions): Promise<RepositoryEnvironmentAnswer>;
    /** Set a repository's setup script, variables and sparse checkout */
    updateEnvironment(id: string, body: RepositoryUpdateEnvironmentBody, options?: CallOptions): Promise<RepositoryUpdateEnvironmentAnswer>;
    /** Show a repository's limits */
    limits(id: string, options?: CallOptions): Promise<RepositoryLimitsAnswer>;
    /** Set how many sessions may run on a repository at once */
    setLimits(id: string, body: RepositorySetLimitsBody, options?: CallOptions): Promise<RepositorySetLimitsAnswer>;
    /** Show what may be pushed although it looks like a secret */
    findings(id: string, options?: CallOptions): Promise<RepositoryFindingsAnswer>;
    /** Set what may be pushed although it looks like a secret */
    setAllowedFindings(id: string, body: RepositorySetAllowedFindingsBody, options?: CallOptions): Promise<RepositorySetAllowedFindingsAnswer>;
    /** Let one more finding pass, by its path, rule or fingerprint */
    allowFinding(id: string, body: RepositoryAllowFindingBody, options?: CallOptions): Promise<RepositoryAllowFindingAnswer>;
  };
  readonly organization: {
    /** Show the organization, its settings and this month's costs */
    get(options?: CallOptions): Promise<OrganizationGetAnswer>;
    /** Change the organization's settings */
    update(body: OrganizationUpdateBody, options?: CallOptions): Promise<OrganizationUpdateAnswer>;
    /** All data of the organization as one tar archive, without any secret */
    export(options?: CallOptions): Promise<Response>;
    /** List all organizations of the server, for its own admins */
    list(query?: OrganizationListQuery, options?: CallOptions): Promise<OrganizationListAnswer>;
    /** Create an organization, with a first admin who is invited, or an admin key; for admins of the server */
    create(body: OrganizationCreateBody, options?: CallOptions): Promise<OrganizationCreateAnswer>;
    /** Say whether an organization uses the server's own access to forges; for admins of the server */
    updateOtherOrganization(id: string, body: OrganizationUpdateOtherOrganizationBody, options?: CallOptions): Promise<OrganizationUpdateOtherOrganizationAnswer>;
    /** Erase another organization with all that there is of it, which can't be undone; for admins of the server */
    erase(id: string, body: OrganizationEraseBody, options?: CallOptions): Promise<OrganizationEraseAnswer>;
    /** Erase the organization with all that there is of it, which can't be undone */
    eraseOrganization(body: OrganizationEraseOrganizationBody, options?: CallOptions): Promise<OrganizationEraseOrganizationAnswer>;
  };
  readonly secret: {
    /** Create a secret */
    create(body: SecretCreateBody, options?: CallOptions): Promise<SecretCreateAnswer>;
    /** List secrets, without their values */
    list(query?: SecretListQuery, options?: CallOptions): Promise<SecretListAnswer>;
    /** Change a secret */
    update(id: string, body: SecretUpdateBody, options?: CallOptions): Promise<SecretUpdateAnswer>;
    /** Delete a secret */
    delete(id: string, options?: CallOptions): Promise<SecretDeleteAnswer>;
  };
  readonly registry: {
    /** Add a private package registry */
    create(body: RegistryCreateBody, options?: CallOptions): Promise<RegistryCreateAnswer>;
    /** List private package registries, without their tokens */
    list(query?: RegistryListQuery, options?: CallOptions): Promise<RegistryListAnswer>;
    /** Replace a registry's token */
    update(id: string, body: RegistryUpdateBody, options?: CallOptions): Promise<RegistryUpdateAnswer>;
    /** Delete a registry with its token */
    delete(id: string, options?: CallOptions): Promise<RegistryDeleteAnswer>;
  };
  readonly connection: {
    /** Connect a forge: its credential is checked first; the webhook's secret is shown only in this response */
    create(body: ConnectionCreateBody, options?: CallOptions): Promise<ConnectionCreateAnswer>;
    /** List connections with their health, without credentials */
    list(query?: ConnectionListQuery, options?: CallOptions): Promise<ConnectionListAnswer>;
    /** Show a connection */
    get(id: string, options?: CallOptions): Promise<ConnectionGetAnswer>;
    /** Rename a connection, say who calls Offstage there, or replace its credential, which is checked first */
    update(id: string, body: ConnectionUpdateBody, options?: CallOptions): Promise<ConnectionUpdateAnswer>;
    /** Check a connection's credential now */
    check(id: string, options?: CallOptions): Promise<ConnectionCheckAnswer>;
    /** Replace the webhook's secret, by one of the forge's or a new one, shown only in this response; the one before is accepted for another day */
    rotateSecret(id: string, body?: ConnectionRotateSecretBody, options?: CallOptions): Promise<ConnectionRotateSecretAnswer>;
    /** Delete a connection with its credential: repositories at its address are used with the operator's configuration, if there is one */
    delete(id: string, options?: CallOptions): Promise<ConnectionDeleteAnswer>;
    /** Begin to register a GitHub App, which a person confirms in the same browser */
    githubAppStart(body: ConnectionGithubAppStartBody, options?: CallOptions): Promise<ConnectionGithubAppStartAnswer>;
  };
  readonly account: {
    /** Connect your own account at a forge: its token is checked first */
    create(body: AccountCreateBody, options?: CallOptions): Promise<AccountCreateAnswer>;
    /** List your own accounts at forges with their health, without their tokens */
    list(query?: AccountListQuery, options?: CallOptions): Promise<AccountListAnswer>;
    /** Show an account of yours */
    get(id: string, options?: CallOptions): Promise<AccountGetAnswer>;
    /** Replace the token of an account of yours, which is checked first */
    update(id: string, body: AccountUpdateBody, options?: CallOptions): Promise<AccountUpdateAnswer>;
    /** Check an account of yours now: if its token is good, it is tried again where it was refused */
    check(id: string, options?: CallOptions): Promise<AccountCheckAnswer>;
    /** Delete an account of yours with its token */
    delete(id: string, options?: CallOptions): Promise<AccountDeleteAnswer>;
  };
  readonly insight: {
    /** Figures of a time: outcomes, pull requests and their merges, waits, tokens and cost */
    figures(query?: InsightFiguresQuery, options?: CallOptions): Promise<InsightFiguresAnswer>;
    /** The same figures as CSV (RFC 4180): a row for each period, or for each period and group */
    csv(query?: InsightCsvQuery, options?: CallOptions): Promise<Response>;
  };
  readonly notice: {
    /** Show what you are told of, and by which channel */
    settings(options?: CallOptions): Promise<NoticeSettingsAnswer>;
    /** Choose what you are told of, and by which channel */
    settingsUpdate(body: NoticeSettingsUpdateBody, options?: CallOptions): Promise<NoticeSettingsUpdateAnswer>;
    /** Have a notice sent to yourself by each channel */
    test(options?: CallOptions): Promise<NoticeTestAnswer>;
    /** End mails of one kind, by the link that such a mail has (RFC 8058) */
    unsubscribe(query: NoticeUnsubscribeQuery, options?: CallOptions): Promise<NoticeUnsubscribeAnswer>;
  };
  readonly subscription: {
    /** Have notices pushed to this browser */
    create(body: SubscriptionCreateBody, options?: CallOptions): Promise<SubscriptionCreateAnswer>;
    /** Have notices pushed to the new address of a browser that was subscribed with a renewalSecret */
    renew(body: SubscriptionRenewBody, options?: CallOptions): Promise<SubscriptionRenewAnswer>;
    /** List your browsers that take notices */
    list(query?: SubscriptionListQuery, options?: CallOptions): Promise<SubscriptionListAnswer>;
    /** Have nothing more pushed to a browser of yours */
    delete(id: string, options?: CallOptions): Promise<SubscriptionDeleteAnswer>;
  };
  readonly key: {
    /** Create an API key, shown only in this response */
    create(body: KeyCreateBody, options?: CallOptions): Promise<KeyCreateAnswer>;
    /** List API keys, by their prefix */
    list(query?: KeyListQuery, options?: CallOptions): Promise<KeyListAnswer>;
    /** Revoke an API key at once */
    revoke(id: string, options?: CallOptions): Promise<KeyRevokeAnswer>;
  };
  readonly login: {
    /** Sign a browser in with a one-time link or a key */
    create(body: LoginCreateBody, options?: CallOptions): Promise<LoginCreateAnswer>;
    /** Sign the browser out */
    delete(options?: CallOptions): Promise<LoginDeleteAnswer>;
    /** Sign this browser in to another organization in which the same person of the identity provider has an account */
    switch(body: LoginSwitchBody, options?: CallOptions): Promise<LoginSwitchAnswer>;
    /** List browsers that are signed in: your own, as an admin all */
    list(query?: LoginListQuery, options?: CallOptions): Promise<LoginListAnswer>;
    /** Sign a browser out */
    revoke(id: string, options?: CallOptions): Promise<LoginRevokeAnswer>;
    /** List the ways to sign in */
    methods(options?: CallOptions): Promise<LoginMethodsAnswer>;
  };
  readonly oauth: {
    /** What a program asks the signed-in person for */
    request(id: string, options?: CallOptions): Promise<OauthRequestAnswer>;
    /** Let a program act for the signed-in person, or refuse; the browser goes on at redirectUrl */
    requestDecide(id: string, body: OauthRequestDecideBody, options?: CallOptions): Promise<OauthRequestDecideAnswer>;
  };
  readonly grant: {
    /** List programs that were let act for people: for you, as an admin for all */
    list(query?: GrantListQuery, options?: CallOptions): Promise<GrantListAnswer>;
    /** End what a program may do: its tokens are refused from then on */
    revoke(id: string, options?: CallOptions): Promise<GrantRevokeAnswer>;
  };
  readonly user: {
    /** Invite a person, by a link that signs them in, and that nothing has but this response and the mail */
    invite(body: UserInviteBody, options?: CallOptions): Promise<UserInviteAnswer>;
    /** Make another link for a person who was invited, and end those before */
    inviteUserAgain(id: string, body?: UserInviteUserAgainBody, options?: CallOptions): Promise<UserInviteUserAgainAnswer>;
    /** List users */
    list(query?: UserListQuery, options?: CallOptions): Promise<UserListAnswer>;
    /** Change a user's role, or disable them */
    update(id: string, body: UserUpdateBody, options?: CallOptions): Promise<UserUpdateAnswer>;
    /** Erase who a user is, sign them out and revoke their keys */
    erase(id: string, options?: CallOptions): Promise<UserEraseAnswer>;
  };
  readonly audit: {
    /** Who changed what, from where, and what was refused */
    list(query?: AuditListQuery, options?: CallOptions): Promise<AuditListAnswer>;
  };
  readonly webhook: {
    /** Create a webhook; its secret is shown only in this response */
    create(body: WebhookCreateBody, options?: CallOptions): Promise<WebhookCreateAnswer>;
    /** List webhooks */
    list(query?: WebhookListQuery, options?: CallOptions): Promise<WebhookListAnswer>;
    /** Show a webhook */
    get(id: string, options?: CallOptions): Promise<WebhookGetAnswer>;
    /** Change, enable or disable a webhook */
    update(id: string, body: WebhookUpdateBody, options?: CallOptions): Promise<WebhookUpdateAnswer>;
    /** Make a new secret, shown only in this response */
    rotate(id: string, options?: CallOptions): Promise<WebhookRotateAnswer>;
    /** Delete a webhook */
    delete(id: string, options?: CallOptions): Promise<WebhookDeleteAnswer>;
    /** Send a test event */
    test(id: string, options?: CallOptions): Promise<WebhookTestAnswer>;
  };
  readonly delivery: {
    /** List deliveries */
    list(query?: DeliveryListQuery, options?: CallOptions): Promise<DeliveryListAnswer>;
    /** Show a delivery, with each attempt and its answer */
    get(id: string, options?: CallOptions): Promise<DeliveryGetAnswer>;
    /** Send a delivery again */
    resend(id: string, options?: CallOptions): Promise<DeliveryResendAnswer>;
  };
  readonly me: {
    /** Show whose key this is */
    get(options?: CallOptions): Promise<MeGetAnswer>;
  };
  readonly system: {
    /** How the server is: workers, queue, database, disk, versions, and what is wrong with them */
    health(options?: CallOptions): Promise<SystemHealthAnswer>;
  };
  readonly task: {
    /** Create a session (the older name) */
    create(body: TaskCreateBody, options?: CallOptions): Promise<TaskCreateAnswer>;
    /** List sessions (the older name) */
    list(query?: TaskListQuery, options?: CallOptions): Promise<TaskListAnswer>;
    /** Search sessions (the older name) */
    search(query: TaskSearchQuery, options?: CallOptions): Promise<TaskSearchAnswer>;
  };
}

/** Makes the operations of a client. */
export function createOperations(send: Send): Operations {
  const call = async <Answer>(request: Call): Promise<Answer> => (await send(request, readJson)) as Answer;
  const part = encodeURIComponent;
  return {
    session: {
      create: (body, options) => call({ method: "POST", path: "/session/create", body, isIdempotent: true, ...options }),
      list: (query, options) => call({ method: "GET", path: "/session/list", query, isIdempotent: true, ...options }),
      search: (query, options) => call({ method: "GET", path: "/session/search", query, isIdempotent: true, ...options }),
      get: (id, options) => call({ method: "GET", path: `/session/${part(id)}`, isIdempotent: true, ...options }),
      queue: (id, options) => call({ method: "POST", path: `/session/${part(id)}/queue`, isIdempotent: false, ...options }),
      cancel: (id, options) => call({ method: "POST", path: `/session/${part(id)}/cancel`, isIdempotent: false, ...options }),
      stop: (id, options) => call({ method: "POST", path: `/session/${part(id)}/stop`, isIdempotent: false, ...options }),
      delete: (id, options) => call({ method: "POST", path: `/session/${part(id)}/delete`, isIdempotent: false, ...options }),
      message: (id, body, options) => call({ method: "POST", path: `/session/${part(id)}/message`, body, isIdempotent: true, ...options }),
      messages: (id, body, options) => call({ method: "POST", path: `/session/${part(id)}/messages`, body, isIdempotent: true, ...options }),
      resolveConflicts: (id, options) => call({ method: "POST", path: `/session/${part(id)}/resolve-conflicts`, isIdempotent: true, ...options }),
      budget: (id, body, options) => call({ method: "POST", path: `/session/${part(id)}/budget`, body, isIdempotent: false, ...options }),
      events: (id, query, options) => call({ method: "GET", path: `/session/${part(id)}/events`, query, isIdempotent: true, ...options }),
      diff: (id, options) => call({ method: "GET", path: `/session/${part(id)}/diff`, isIdempotent: true, ...options }),
      changes: (options) => send({ method: "GET", path: "/session/changes", isIdempotent: true, ...options }),
      labels: (id, body, options) => call({ method: "POST", path: `/session/${part(id)}/labels`, body, isIdempotent: false, ...options }),
      archive: (id, options) => call({ method: "POST", path: `/session/${part(id)}/archive`, isIdempotent: false, ...options }),
      unarchive: (id, options) => call({ method: "POST", path: `/session/${part(id)}/unarchive`, isIdempotent: false, ...options }),
      messageList: (id, query, options) => call({ method: "GET", path: `/session/${part(id)}/message/list`, query, isIdempotent: true, ...options }),
      messageWithdraw: (id, messageId, options) => call({ method: "POST", path: `/session/${part(id)}/message/${part(messageId)}/withdraw`, isIdempotent: false, ...options }),
      shareCreate: (id, body, options) => call({ method: "POST", path: `/session/${part(id)}/share/create`, body, isIdempotent: true, ...options }),
      shareList: (id, query, options) => call({ method: "GET", path: `/session/${part(id)}/share/list`, query, isIdempotent: true, ...options }),
      shareRevoke: (id, shareId, options) => call({ method: "POST", path: `/session/${part(id)}/share/${part(shareId)}/revoke`, isIdempotent: false, ...options }),
      patch: (id, query, options) => send({ method: "GET", path: `/session/${part(id)}/patch`, query, isIdempotent: true, ...options }),
      transcript: (id, query, options) => call({ method: "GET", path: `/session/${part(id)}/transcript`, query, isIdempotent: true, ...options }),
      fileList: (id, query, options) => call({ method: "GET", path: `/session/${part(id)}/file/list`, query, isIdempotent: true, ...options }),
      fileRead: (id, query, options) => call({ method: "GET", path: `/session/${part(id)}/file/read`, query, isIdempotent: true, ...options }),
      answerList: (id, query, options) => call({ method: "GET", path: `/session/${part(id)}/answer/list`, query, isIdempotent: true, ...options }),
      unread: (options) => call({ method: "GET", path: "/session/unread", isIdempotent: true, ...options }),
      read: (id, options) => call({ method: "POST", path: `/session/${part(id)}/read`, isIdempotent: false, ...options }),
      readAll: (options) => call({ method: "POST", path: "/session/read-all", isIdempotent: false, ...options }),
    },
    label: {
      list: (query, options) => call({ method: "GET", path: "/label/list", query, isIdempotent: true, ...options }),
    },
    share: {
      list: (query, options) => call({ method: "GET", path: "/share/list", query, isIdempotent: true, ...options }),
    },
    automation: {
      create: (body, options) => call({ method: "POST", path: "/automation/create", body, isIdempotent: true, ...options }),
      list: (query, options) => call({ method: "GET", path: "/automation/list", query, isIdempotent: true, ...options }),
      get: (keyOrId, options) => call({ method: "GET", path: `/automation/${part(keyOrId)}`, isIdempotent: true, ...options }),
      update: (keyOrId, body, options) => call({ method: "POST", path: `/automation/${part(keyOrId)}/update`, body, isIdempotent: false, ...options }),
      delete: (keyOrId, options) => call({ method: "POST", path: `/automation/${part(keyOrId)}/delete`, isIdempotent: false, ...options }),
      preview: (keyOrId, body, options) => call({ method: "POST", path: `/automation/${part(keyOrId)}/preview`, body, isIdempotent: false, ...options }),
      runs: (keyOrId, query, options) => call({ method: "GET", path: `/automation/${part(keyOrId)}/runs`, query, isIdempotent: true, ...options }),
      previewDraft: (body, options) => call({ method: "POST", path: "/automation/preview", body, isIdempotent: false, ...options }),
      templateList: (options) => call({ method: "GET", path: "/automation/template/list", isIdempotent: true, ...options }),
      state: (keyOrId, options) => call({ method: "GET", path: `/automation/${part(keyOrId)}/state`, isIdempotent: true, ...options }),
      stateUpdate: (keyOrId, body, options) => call({ method: "POST", path: `/automation/${part(keyOrId)}/state/update`, body, isIdempotent: false, ...options }),
      trigger: (keyOrId, body, options) => call({ method: "POST", path: `/automation/${part(keyOrId)}/trigger`, body, isIdempotent: true, ...options }),
      triggerRotate: (keyOrId, id, options) => call({ method: "POST", path: `/automation/${part(keyOrId)}/trigger/${part(id)}/rotate`, isIdempotent: true, ...options }),
    },
    agent: {
      trigger: (keyOrId, body, options) => call({ method: "POST", path: `/agent/${part(keyOrId)}/trigger`, body, isIdempotent: true, ...options }),
      list: (options) => call({ method: "GET", path: "/agent/list", isIdempotent: true, ...options }),
    },
    hook: {
      deliver: (triggerId, query, options) => call({ method: "POST", path: `/hook/${part(triggerId)}`, query, isIdempotent: false, ...options }),
      forge: (connectionId, options) => call({ method: "POST", path: `/hook/forge/${part(connectionId)}`, isIdempotent: false, ...options }),
    },
    job: {
      list: (query, options) => call({ method: "GET", path: "/job/list", query, isIdempotent: true, ...options }),
      get: (id, options) => call({ method: "GET", path: `/job/${part(id)}`, isIdempotent: true, ...options }),
      cancel: (id, options) => call({ method: "POST", path: `/job/${part(id)}/cancel`, isIdempotent: false, ...options }),
    },
    ledger: {
      list: (query, options) => call({ method: "GET", path: "/ledger/list", query, isIdempotent: true, ...options }),
      get: (id, options) => call({ method: "GET", path: `/ledger/${part(id)}`, isIdempotent: true, ...options }),
      replay: (id, options) => call({ method: "POST", path: `/ledger/${part(id)}/replay`, isIdempotent: true, ...options }),
    },
    repository: {
      create: (body, options) => call({ method: "POST", path: "/repository/create", body, isIdempotent: true, ...options }),
      list: (query, options) => call({ method: "GET", path: "/repository/list", query, isIdempotent: true, ...options }),
      get: (id, options) => call({ method: "GET", path: `/repository/${part(id)}`, isIdempotent: true, ...options }),
      update: (id, body, options) => call({ method: "POST", path: `/repository/${part(id)}/update`, body, isIdempotent: false, ...options }),
      delete: (id, options) => call({ method: "POST", path: `/repository/${part(id)}/delete`, isIdempotent: false, ...options }),
      search: (query, options) => call({ method: "GET", path: "/repository/search", query, isIdempotent: true, ...options }),
      branches: (query, options) => call({ method: "GET", path: "/repository/branches", query, isIdempotent: true, ...options }),
      files: (query, options) => call({ method: "GET", path: "/repository/files", query, isIdempotent: true, ...options }),
      trySetup: (id, body, options) => call({ method: "POST", path: `/repository/${part(id)}/try-setup`, body, isIdempotent: true, ...options }),
      automationFiles: (id, options) => call({ method: "GET", path: `/repository/${part(id)}/automation-files`, isIdempotent: true, ...options }),
      setAutomationFiles: (id, body, options) => call({ method: "POST", path: `/repository/${part(id)}/automation-files`, body, isIdempotent: false, ...options }),
      egress: (id, options) => call({ method: "GET", path: `/repository/${part(id)}/egress`, isIdempotent: true, ...options }),
      setEgress: (id, body, options) => call({ method: "POST", path: `/repository/${part(id)}/egress`, body, isIdempotent: false, ...options }),
      allow: (id, body, options) => call({ method: "POST", path: `/repository/${part(id)}/allow`, body, isIdempotent: false, ...options }),
      environment: (id, options) => call({ method: "GET", path: `/repository/${part(id)}/environment`, isIdempotent: true, ...options }),
      updateEnvironment: (id, body, options) => call({ method: "POST", path: `/repository/${part(id)}/environment`, body, isIdempotent: false, ...options }),
      limits: (id, options) => call({ method: "GET", path: `/repository/${part(id)}/limits`, isIdempotent: true, ...options }),
      setLimits: (id, body, options) => call({ method: "POST", path: `/repository/${part(id)}/limits`, body, isIdempotent: false, ...options }),
      findings: (id, options) => call({ method: "GET", path: `/repository/${part(id)}/findings`, isIdempotent: true, ...options }),
      setAllowedFindings: (id, body, options) => call({ method: "POST", path: `/repository/${part(id)}/findings`, body, isIdempotent: false, ...options }),
      allowFinding: (id, body, options) => call({ method: "POST", path: `/repository/${part(id)}/allow-finding`, body, isIdempotent: false, ...options }),
    },
    organization: {
      get: (options) => call({ method: "GET", path: "/organization", isIdempotent: true, ...options }),
      update: (body, options) => call({ method: "POST", path: "/organization/update", body, isIdempotent: false, ...options }),
      export: (options) => send({ method: "GET", path: "/organization/export", isIdempotent: true, ...options }),
      list: (query, options) => call({ method: "GET", path: "/organization/list", query, isIdempotent: true, ...options }),
      create: (body, options) => call({ method: "POST", path: "/organization/create", body, isIdempotent: true, ...options }),
      updateOtherOrganization: (id, body, options) => call({ method: "POST", path: `/organization/${part(id)}/update`, body, isIdempotent: false, ...options }),
      erase: (id, body, options) => call({ method: "POST", path: `/organization/${part(id)}/erase`, body, isIdempotent: false, ...options }),
      eraseOrganization: (body, options) => call({ method: "POST", path: "/organization/erase", body, isIdempotent: false, ...options }),
    },
    secret: {
      create: (body, options) => call({ method: "POST", path: "/secret/create", body, isIdempotent: true, ...options }),
      list: (query, options) => call({ method: "GET", path: "/secret/list", query, isIdempotent: true, ...options }),
      update: (id, body, options) => call({ method: "POST", path: `/secret/${part(id)}/update`, body, isIdempotent: false, ...options }),
      delete: (id, options) => call({ method: "POST", path: `/secret/${part(id)}/delete`, isIdempotent: false, ...options }),
    },
    registry: {
      create: (body, options) => call({ method: "POST", path: "/registry/create", body, isIdempotent: true, ...options }),
      list: (query, options) => call({ method: "GET", path: "/registry/list", query, isIdempotent: true, ...options }),
      update: (id, body, options) => call({ method: "POST", path: `/registry/${part(id)}/update`, body, isIdempotent: false, ...options }),
      delete: (id, options) => call({ method: "POST", path: `/registry/${part(id)}/delete`, isIdempotent: false, ...options }),
    },
    connection: {
      create: (body, options) => call({ method: "POST", path: "/connection/create", body, isIdempotent: true, ...options }),
      list: (query, options) => call({ method: "GET", path: "/connection/list", query, isIdempotent: true, ...options }),
      get: (id, options) => call({ method: "GET", path: `/connection/${part(id)}`, isIdempotent: true, ...options }),
      update: (id, body, options) => call({ method: "POST", path: `/connection/${part(id)}/update`, body, isIdempotent: false, ...options }),
      check: (id, options) => call({ method: "POST", path: `/connection/${part(id)}/check`, isIdempotent: false, ...options }),
      rotateSecret: (id, body, options) => call({ method: "POST", path: `/connection/${part(id)}/rotate-secret`, body, isIdempotent: true, ...options }),
      delete: (id, options) => call({ method: "POST", path: `/connection/${part(id)}/delete`, isIdempotent: false, ...options }),
      githubAppStart: (body, options) => call({ method: "POST", path: "/connection/github-app/start", body, isIdempotent: false, ...options }),
    },
    account: {
      create: (body, options) => call({ method: "POST", path: "/account/create", body, isIdempotent: true, ...options }),
      list: (query, options) => call({ method: "GET", path: "/account/list", query, isIdempotent: true, ...options }),
      get: (id, options) => call({ method: "GET", path: `/account/${part(id)}`, isIdempotent: true, ...options }),
      update: (id, body, options) => call({ method: "POST", path: `/account/${part(id)}/update`, body, isIdempotent: false, ...options }),
      check: (id, options) => call({ method: "POST", path: `/account/${part(id)}/check`, isIdempotent: false, ...options }),
      delete: (id, options) => call({ method: "POST", path: `/account/${part(id)}/delete`, isIdempotent: false, ...options }),
    },
    insight: {
      figures: (query, options) => call({ method: "GET", path: "/insight/figures", query, isIdempotent: true, ...options }),
      csv: (query, options) => send({ method: "GET", path: "/insight/csv", query, isIdempotent: true, ...options }),
    },
    notice: {
      settings: (options) => call({ method: "GET", path: "/notice/settings", isIdempotent: true, ...options }),
      settingsUpdate: (body, options) => call({ method: "POST", path: "/notice/settings/update", body, isIdempotent: false, ...options }),
      test: (options) => call({ method: "POST", path: "/notice/test", isIdempotent: false, ...options }),
      unsubscribe: (query, options) => call({ method: "POST", path: "/notice/unsubscribe", query, isIdempotent: false, ...options }),
    },
    subscription: {
      create: (body, options) => call({ method: "POST", path: "/subscription/create", body, isIdempotent: true, ...options }),
      renew: (body, options) => call({ method: "POST", path: "/subscription/renew", body, isIdempotent: false, ...options }),
      list: (query, options) => call({ method: "GET", path: "/subscription/list", query, isIdempotent: true, ...options }),
      delete: (id, options) => call({ method: "POST", path: `/subscription/${part(id)}/delete`, isIdempotent: false, ...options }),
    },
    key: {
      create: (body, options) => call({ method: "POST", path: "/key/create", body, isIdempotent: true, ...options }),
      list: (query, options) => call({ method: "GET", path: "/key/list", query, isIdempotent: true, ...options }),
      revoke: (id, options) => call({ method: "POST", path: `/key/${part(id)}/revoke`, isIdempotent: false, ...options }),
    },
    login: {
      create: (body, options) => call({ method: "POST", path: "/login/create", body, isIdempotent: false, ...options }),
      delete: (options) => call({ method: "POST", path: "/login/delete", isIdempotent: false, ...options }),
      switch: (body, options) => call({ method: "POST", path: "/login/switch", body, isIdempotent: false, ...options }),
      list: (query, options) => call({ method: "GET", path: "/login/list", query, isIdempotent: true, ...options }),
      revoke: (id, options) => call({ method: "POST", path: `/login/${part(id)}/revoke`, isIdempotent: false, ...options }),
      methods: (options) => call({ method: "GET", path: "/login/methods", isIdempotent: true, ...options }),
    },
    oauth: {
      request: (id, options) => call({ method: "GET", path: `/oauth/request/${part(id)}`, isIdempotent: true, ...options }),
      requestDecide: (id, body, options) => call({ method: "POST", path: `/oauth/request/${part(id)}/decide`, body, isIdempotent: false, ...options }),
    },
    grant: {
      list: (query, options) => call({ method: "GET", path: "/grant/list", query, isIdempotent: true, ...options }),
      revoke: (id, options) => call({ method: "POST", path: `/grant/${part(id)}/revoke`, isIdempotent: false, ...options }),
    },
    user: {
      invite: (body, options) => call({ method: "POST", path: "/user/invite", body, isIdempotent: true, ...options }),
      inviteUserAgain: (id, body, options) => call({ method: "POST", path: `/user/${part(id)}/invite`, body, isIdempotent: true, ...options }),
      list: (query, options) => call({ method: "GET", path: "/user/list", query, isIdempotent: true, ...options }),
      update: (id, body, options) => call({ method: "POST", path: `/user/${part(id)}/update`, body, isIdempotent: false, ...options }),
      erase: (id, options) => call({ method: "POST", path: `/user/${part(id)}/erase`, isIdempotent: false, ...options }),
    },
    audit: {
      list: (query, options) => call({ method: "GET", path: "/audit/list", query, isIdempotent: true, ...options }),
    },
    webhook: {
      create: (body, options) => call({ method: "POST", path: "/webhook/create", body, isIdempotent: true, ...options }),
      list: (query, options) => call({ method: "GET", path: "/webhook/list", query, isIdempotent: true, ...options }),
      get: (id, options) => call({ method: "GET", path: `/webhook/${part(id)}`, isIdempotent: true, ...options }),
      update: (id, body, options) => call({ method: "POST", path: `/webhook/${part(id)}/update`, body, isIdempotent: false, ...options }),
      rotate: (id, options) => call({ method: "POST", path: `/webhook/${part(id)}/rotate`, isIdempotent: true, ...options }),
      delete: (id, options) => call({ method: "POST", path: `/webhook/${part(id)}/delete`, isIdempotent: false, ...options }),
      test: (id, options) => call({ method: "POST", path: `/webhook/${part(id)}/test`, isIdempotent: true, ...options }),
    },
    delivery: {
      list: (query, options) => call({ method: "GET", path: "/delivery/list", query, isIdempotent: true, ...options }),
      get: (id, options) => call({ method: "GET", path: `/delivery/${part(id)}`, isIdempotent: true, ...options }),
      resend: (id, options) => call({ method: "POST", path: `/delivery/${part(id)}/resend`, isIdempotent: false, ...options }),
    },
    me: {
      get: (options) => call({ method: "GET", path: "/me", isIdempotent: true, ...options }),
    },
    system: {
      health: (options) => call({ method: "GET", path: "/system/health", isIdempotent: true, ...options }),
    },
    task: {
      create: (body, options) => call({ method: "POST", path: "/task/create", body, isIdempotent: true, ...options }),
      list: (query, options) => call({ method: "GET", path: "/task/list", query, isIdempotent: true, ...options }),
      search: (query, options) => call({ method: "GET", path: "/task/search", query, isIdempotent: true, ...options }),
    },
  };
}
