import { RouterProvider } from "@tanstack/react-router";
import { QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { pagePath } from "../domain/people/sign-in.ts";
import { announce } from "./elements/announce.tsx";
import { createQueryClient, isShared } from "./query.ts";
import { createAppRouter } from "./router.tsx";
import { followSystem } from "./shell/preferences.ts";
import { showLanguage, wantedLanguage } from "./texts/language.ts";
import { loadTexts } from "./texts/texts.ts";
import "./styles.css";

const router = createAppRouter();
const queryClient = createQueryClient(
  () => {
    const { pathname, href } = router.state.location;
    if (pathname === "/sign-in" || isShared) return;
    void router.navigate({ to: "/sign-in", search: { next: pagePath.test(href) ? href : pathname } });
  },
  // The place for the message may be gone with the control.
  ({ message }) => announce(message),
);

async function start(): Promise<void> {
  followSystem();
  const language = wantedLanguage();
  await loadTexts(language);
  showLanguage(language);
  const root = document.querySelector("#root");
  if (root === null) throw new Error("the page has no #root");
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={queryClient}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </StrictMode>,
  );
}

void start();
