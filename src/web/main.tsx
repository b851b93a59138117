import { RouterProvider } from "@tanstack/react-router";
import { QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { pagePath } from "../domain/people/sign-in.ts";
import { createQueryClient } from "./query.ts";
import { createAppRouter } from "./router.tsx";
import "./styles.css";

const router = createAppRouter();
const queryClient = createQueryClient(() => {
  const { pathname, searchStr } = router.state.location;
  if (pathname === "/sign-in") return;
  const whole = `${pathname}${searchStr}`;
  void router.navigate({ to: "/sign-in", search: { next: pagePath.test(whole) ? whole : pathname } });
});

const root = document.querySelector("#root");
if (root === null) throw new Error("the page has no #root");
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queryClient}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
);
