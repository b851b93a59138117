import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from "@tanstack/react-router";
import { z } from "zod";
import { ledgerOutcomes } from "../domain/automations/ledger.ts";
import { auditOutcomes } from "../domain/people/audit.ts";
import { sessionStatuses } from "../domain/sessions/status.ts";
import { Layout, NotFound } from "./layout.tsx";
import { SessionPage } from "./pages/session-page.tsx";
import { SessionsPage } from "./pages/sessions-page.tsx";
import { SignInPage } from "./pages/sign-in-page.tsx";

const rootRoute = createRootRoute({ component: Layout, notFoundComponent: NotFound });

const sessionsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/",
  component: SessionsPage,
  validateSearch: z.object({
    q: z.string().optional().catch(undefined),
    status: z.enum(sessionStatuses).optional().catch(undefined),
    by: z.enum(["me"]).optional().catch(undefined),
  }),
});

const sessionRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/sessions/$id",
  component: function Session() {
    const { id } = sessionRoute.useParams();
    // The key discards all state of another session.
    return <SessionPage key={id} id={id} />;
  },
  validateSearch: z.object({ tab: z.enum(["changes", "answers"]).optional().catch(undefined) }),
});

const signInRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/sign-in",
  component: SignInPage,
  validateSearch: z.object({
    next: z.string().optional().catch(undefined),
    problem: z.string().optional().catch(undefined),
  }),
});

/** Rarely opened pages are loaded when they are opened. */
const settingsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/settings",
  component: lazyRouteComponent(() => import("./pages/settings-page.tsx"), "SettingsPage"),
  validateSearch: z.object({ connection: z.enum(["expired", "failed"]).optional().catch(undefined) }),
});

const auditRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/audit",
  component: lazyRouteComponent(() => import("./pages/audit-page.tsx"), "AuditPage"),
  validateSearch: z.object({ outcome: z.enum(auditOutcomes).optional().catch(undefined) }),
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

const ledgerRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/ledger",
  component: lazyRouteComponent(() => import("./pages/ledger-page.tsx"), "LedgerPage"),
  validateSearch: z.object({
    automation: z.uuid().optional().catch(undefined),
    outcome: z.enum(ledgerOutcomes).optional().catch(undefined),
    entry: z.uuid().optional().catch(undefined),
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

/** The router of all pages. */
export function createAppRouter() {
  return createRouter({
    routeTree: rootRoute.addChildren([
      sessionsRoute,
      sessionRoute,
      automationsRoute,
      automationRoute,
      ledgerRoute,
      webhooksRoute,
      webhookRoute,
      settingsRoute,
      auditRoute,
      signInRoute,
    ]),
    scrollRestoration: true,
  });
}

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof createAppRouter>;
  }
}
