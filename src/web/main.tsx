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
/** The visit of a page that was last to give way to the sign-in. */
let leftVisit: string | undefined;
const queryClient = createQueryClient(
  (isAction) => {
    const { pathname, href, state } = router.state.location;
    // A person who stayed, for what is not saved, is not asked each time that the page looks for news.
    if (pathname === "/sign-in" || isShared || (!isAction && leftVisit === state.__TSR_key)) return;
    leftVisit = state.__TSR_key;
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
