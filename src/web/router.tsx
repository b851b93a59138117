import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from "@tanstack/react-router";
import { ledgerOutcomes, type LedgerOutcome } from "../domain/automations/ledger-outcome.ts";
import { insightDimensions } from "../domain/insight/dimension.ts";
import { auditOutcomes, type AuditOutcome } from "../domain/people/audit-outcome.ts";
import { sessionStatuses } from "../domain/sessions/status.ts";
import type { HomeFilter } from "./home/filter.ts";
import { choiceOfDays, type InsightFilter } from "./insight/filter.ts";
import { dayOf, oneOf, textOf, uuidOf } from "./search.ts";
import { FailedPage, Layout, NotFound } from "./shell/layout.tsx";

/** The search parameters of an address, which are untrusted. */
type Given = Record<string, unknown>;

const rootRoute = createRootRoute({ component: Layout, notFoundComponent: NotFound });

const sessionsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/",
  component: lazyRouteComponent(() => import("./pages/sessions-page.tsx"), "SessionsPage"),
  staticData: { isWide: true },
  validateSearch: ({ q, status, by, repository, automation, label, archived, unread }: Given): HomeFilter => ({
    q: textOf(q),
    status: oneOf(sessionStatuses, status),
    by: oneOf(["me"], by) ?? uuidOf(by),
    repository: uuidOf(repository),
    automation: uuidOf(automation),
    label: textOf(label),
    archived: archived === true || undefined,
    unread: unread === true || undefined,
  }),
});

/** The page knows its tabs: here, what comes with every page, is not the place for them. */
const tabIn = ({ tab, file }: Given): { tab?: string | undefined; file?: string | undefined } => ({
  tab: textOf(tab),
  file: textOf(file),
});

const SessionPage = lazyRouteComponent(() => import("./pages/session-page.tsx"), "SessionPage");
const sessionRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/sessions/$id",
  component: function Session() {
    const { id } = sessionRoute.useParams();
    // The key discards all state of another session.
    return <SessionPage key={id} id={id} />;
  },
  staticData: { isWide: true },
  validateSearch: tabIn,
});

/** The same page for a reader by a share link. */
const sharedRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/shared/$id",
  component: function Shared() {
    const { id } = sharedRoute.useParams();
    return <SessionPage key={id} id={id} />;
  },
  staticData: { isWide: true },
  validateSearch: tabIn,
});

const signInRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/sign-in",
  component: lazyRouteComponent(() => import("./pages/sign-in-page.tsx"), "SignInPage"),
  validateSearch: ({
    next,
    problem,
    invited,
  }: Given): { next?: string | undefined; problem?: string | undefined; invited?: true | undefined } => ({
    next: textOf(next),
    problem: textOf(problem),
    invited: invited === true || undefined,
  }),
});

/** Rarely opened pages are loaded when they are opened. */
const settingsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/settings",
  component: lazyRouteComponent(() => import("./pages/settings-page.tsx"), "SettingsPage"),
  validateSearch: ({ connection }: Given): { connection?: "expired" | "failed" | undefined } => ({
    connection: oneOf(["expired", "failed"], connection),
  }),
});

const auditRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/audit",
  component: lazyRouteComponent(() => import("./pages/audit-page.tsx"), "AuditPage"),
  validateSearch: ({ outcome }: Given): { outcome?: AuditOutcome | undefined } => ({
    outcome: oneOf(auditOutcomes, outcome),
  }),
});

const peopleRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/people",
  component: lazyRouteComponent(() => import("./pages/people-page.tsx"), "PeoplePage"),
});

const systemRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/system",
  component: lazyRouteComponent(() => import("./pages/system-page.tsx"), "SystemPage"),
});

const automationsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/automations",
  component: lazyRouteComponent(() => import("./pages/automations-page.tsx"), "AutomationsPage"),
});

const AutomationPage = lazyRouteComponent(() => import("./pages/automation-page.tsx"), "AutomationPage");
const automationRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/automations/$id",
  component: function Automation() {
    const { id } = automationRoute.useParams();
    return <AutomationPage key={id} id={id} />;
  },
});

const newAutomationRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/automations/new",
  component: lazyRouteComponent(() => import("./pages/automation-editor-page.tsx"), "NewAutomationPage"),
  validateSearch: ({ template }: Given): { template?: string | undefined } => ({ template: textOf(template) }),
});

const EditAutomationPage = lazyRouteComponent(() => import("./pages/automation-editor-page.tsx"), "EditAutomationPage");
const editAutomationRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/automations/$id/edit",
  component: function EditAutomation() {
    const { id } = editAutomationRoute.useParams();
    return <EditAutomationPage key={id} id={id} />;
  },
});

const repositoriesRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/repositories",
  component: lazyRouteComponent(() => import("./pages/repositories-page.tsx"), "RepositoriesPage"),
  validateSearch: ({ q }: Given): { q?: string | undefined } => ({ q: textOf(q) }),
});

const RepositoryPage = lazyRouteComponent(() => import("./pages/repository-page.tsx"), "RepositoryPage");
const repositoryRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/repositories/$id",
  component: function Repository() {
    const { id } = repositoryRoute.useParams();
    return <RepositoryPage key={id} id={id} />;
  },
  validateSearch: ({ trial }: Given): { trial?: string | undefined } => ({ trial: uuidOf(trial) }),
});

const ledgerRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/ledger",
  component: lazyRouteComponent(() => import("./pages/ledger-page.tsx"), "LedgerPage"),
  validateSearch: (
    given: Given,
  ): { automation?: string | undefined; outcome?: LedgerOutcome | undefined; entry?: string | undefined } => ({
    automation: uuidOf(given["automation"]),
    outcome: oneOf(ledgerOutcomes, given["outcome"]),
    entry: uuidOf(given["entry"]),
  }),
});

const insightRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/insight",
  component: lazyRouteComponent(() => import("./pages/insight-page.tsx"), "InsightPage"),
  staticData: { isWide: true },
  validateSearch: ({ days, from, to, by, group, key, repository }: Given): InsightFilter => ({
    days: choiceOfDays.find((each) => each === days),
    from: dayOf(from),
    to: dayOf(to),
    by: oneOf(["week"], by),
    group: oneOf(insightDimensions, group),
    key: typeof key === "number" ? String(key) : textOf(key),
    repository: uuidOf(repository),
  }),
});

const webhooksRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/webhooks",
  component: lazyRouteComponent(() => import("./pages/webhooks-page.tsx"), "WebhooksPage"),
});

const WebhookPage = lazyRouteComponent(() => import("./pages/webhook-page.tsx"), "WebhookPage");
const webhookRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/webhooks/$id",
  component: function Webhook() {
    const { id } = webhookRoute.useParams();
    // The key prevents that one webhook's secret is shown beside another.
    return <WebhookPage key={id} id={id} />;
  },
});

const consentProblemRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/authorize",
  component: lazyRouteComponent(() => import("./pages/consent-page.tsx"), "ConsentProblemPage"),
  validateSearch: ({ problem }: Given): { problem?: string | undefined } => ({ problem: textOf(problem) }),
});

const ConsentPage = lazyRouteComponent(() => import("./pages/consent-page.tsx"), "ConsentPage");
const consentRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/authorize/$id",
  component: function Consent() {
    const { id } = consentRoute.useParams();
    return <ConsentPage key={id} id={id} />;
  },
});

/** The router of all pages. */
export function createAppRouter() {
  return createRouter({
    routeTree: rootRoute.addChildren([
      sessionsRoute,
      sessionRoute,
      sharedRoute,
      automationsRoute,
      automationRoute,
      newAutomationRoute,
      editAutomationRoute,
      repositoriesRoute,
      repositoryRoute,
      ledgerRoute,
      insightRoute,
      webhooksRoute,
      webhookRoute,
      settingsRoute,
      auditRoute,
      peopleRoute,
      systemRoute,
      signInRoute,
      consentProblemRoute,
      consentRoute,
    ]),
    scrollRestoration: true,
    defaultErrorComponent: FailedPage,
  });
}

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof createAppRouter>;
  }
}
