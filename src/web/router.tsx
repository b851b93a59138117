import { createRootRoute, createRoute, createRouter } from "@tanstack/react-router";
import { z } from "zod";
import { Layout, NotFound } from "./layout.tsx";
import { SessionPage } from "./pages/session-page.tsx";
import { SessionsPage } from "./pages/sessions-page.tsx";
import { SignInPage } from "./pages/sign-in-page.tsx";

const rootRoute = createRootRoute({ component: Layout, notFoundComponent: NotFound });

const sessionsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/",
  component: SessionsPage,
  validateSearch: z.object({ q: z.string().optional().catch(undefined) }),
});

const sessionRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/sessions/$id",
  component: function Session() {
    const { id } = sessionRoute.useParams();
    // A key of its own: nothing of one session is shown in another.
    return <SessionPage key={id} id={id} />;
  },
});

const signInRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/sign-in",
  component: SignInPage,
  validateSearch: z.object({ next: z.string().optional().catch(undefined) }),
});

export function createAppRouter() {
  return createRouter({
    routeTree: rootRoute.addChildren([sessionsRoute, sessionRoute, signInRoute]),
    scrollRestoration: true,
  });
}

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof createAppRouter>;
  }
}
