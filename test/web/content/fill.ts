import type { Database } from "../../../src/database/database.ts";
import { createRepository } from "../../../src/store/repositories/repositories.ts";
import { addAutomation, addPerson } from "../../store/fixtures.ts";
import { beginning, ending, fewFiles, manyEvents, manyFiles, message, used, work } from "./events.ts";
import { storeSession, type StoredSession } from "./sessions.ts";

/** Ids of sessions that pages are shown of. */
export interface Filled {
  readonly running: string;
  readonly completed: string;
  readonly failed: string;
  readonly waiting: string;
  readonly long: string;
  readonly large: string;
}

/** Fills an organization with what real ones have: long titles, other scripts, failures, conflicts, what waits, what runs. */
export async function fillOrganization(database: Database, organizationId: string): Promise<Filled> {
  const repository = async (name: string): Promise<string> => {
    const url = `https://github.com/${name}`;
    const input = { url, key: `github.com/${name}`, name, branch: null, description: null };
    return (await createRepository(database, organizationId, input)).id;
  };
  const shop = await repository("acme/shop");
  const docs = await repository("acme/documentation-of-everything-we-ever-built");
  const web = await repository("acme/web");
  const ada = (await addPerson(database, organizationId, { name: "Ada Lovelace" })).userId;
  const noor = (await addPerson(database, organizationId, { name: "نور الهدى" })).userId;
  const nightly = await addAutomation(database, organizationId, "nightly-dependencies");
  const store = (session: StoredSession): Promise<string> => storeSession(database, organizationId, session);
  const prompt =
    "Round the cart's total once\n\nThree discounted items cost a cent too much. Round at the end, not for each item.";

  for (const old of oldSessions({ shop, docs, web, ada, noor, nightly })) await store(old);
  const completed = await store({
    title: "Round the cart's total once",
    prompt,
    status: "completed",
    repositories: [shop],
    requestedBy: ada,
    spentUsd: 0.41,
    budgetUsd: 5,
    minutesAgo: 42,
    pullRequest: { number: 482, state: "open", mergeable: true },
    events: [...beginning(prompt), ...work(), ...ending(482)],
    patch: fewFiles,
  });
  const failed = await store({
    title:
      "Move the search to the new index, and delete the old one once nothing reads it any more, with everything that only it used",
    status: "failed",
    repositories: [web],
    requestedBy: noor,
    minutesAgo: 65,
    spentUsd: 1.2,
    failure: {
      code: "push_rejected",
      reason: "The forge refused the push: the branch is protected by the rule “only reviewed commits”.",
      remedy: "Let Offstage push to branches that begin with offstage/, then retry.",
    },
    events: [
      ...beginning("Move the search to the new index"),
      ...work(),
      {
        type: "session.status",
        data: {
          from: "running",
          to: "failed",
          failure: {
            code: "push_rejected",
            reason: "The forge refused the push: the branch is protected by the rule “only reviewed commits”.",
            retryable: true,
            remedy: "Let Offstage push to branches that begin with offstage/, then retry.",
          },
        },
      },
    ],
  });
  const waiting = await store({
    title: "Write the tests that the payment module never had",
    status: "waiting",
    repositories: [shop],
    requestedBy: ada,
    spentUsd: 5.02,
    budgetUsd: 5,
    waiting: "the session's budget is used up: an admin can raise it",
    events: [...beginning("Write the tests that the payment module never had"), ...work()],
  });
  const running = await store({
    title: "Fix the flaky test of the cart 🛒, and say why it was flaky",
    prompt,
    status: "running",
    repositories: [shop],
    requestedBy: ada,
    minutesAgo: 3,
    spentUsd: 0.41,
    budgetUsd: 5,
    events: [...beginning(prompt), ...used(30), ...work()],
    patch: fewFiles,
  });
  const long = await store({
    title: "Work for a long time",
    status: "completed",
    repositories: [web],
    minutesAgo: 300,
    events: manyEvents(10_000),
  });
  const large = await store({
    title: "Rename everything that is called a widget",
    status: "completed",
    repositories: [web],
    minutesAgo: 310,
    pullRequest: { number: 77, state: "merged" },
    events: [
      ...beginning("Rename everything that is called a widget"),
      message("m", "Renamed **500** files."),
      ...ending(77),
    ],
    patch: manyFiles(500),
  });
  return { running, completed, failed, waiting, long, large };
}

function oldSessions(
  of: Readonly<Record<"shop" | "docs" | "web" | "ada" | "noor" | "nightly", string>>,
): StoredSession[] {
  const { shop, docs, web, ada, noor, nightly } = of;
  return [
    {
      title: "تحديث وثائق واجهة برمجة التطبيقات لتشمل نقاط النهاية الجديدة",
      status: "completed",
      repositories: [docs],
      requestedBy: noor,
      minutesAgo: 1_500,
      pullRequest: { number: 12, state: "merged" },
      spentUsd: 0.08,
    },
    {
      title: "Update dependencies",
      status: "completed",
      repositories: [web, shop],
      automationId: nightly,
      minutesAgo: 700,
      pullRequest: { number: 901, state: "open", mergeable: false },
      spentUsd: 0.36,
    },
    {
      title: "Why does the build take nine minutes?",
      labels: ["build", "question", "of-the-week"],
      status: "completed",
      repositories: [web],
      requestedBy: ada,
      minutesAgo: 2_900,
      spentUsd: 0.0042,
    },
    {
      title: "Translate the settings page to 日本語 and check that nothing is cut",
      status: "completed",
      repositories: [web],
      requestedBy: noor,
      minutesAgo: 3_000,
      pullRequest: { number: 71, state: "closed" },
      spentUsd: 2.4,
    },
    { title: "Try the new linter", status: "cancelled", repositories: [web], requestedBy: ada, minutesAgo: 4_400 },
    { title: "Draft: split the monolith", status: "draft", repositories: [shop], requestedBy: ada, minutesAgo: 30 },
    { title: "Update dependencies", status: "queued", repositories: [docs], automationId: nightly, minutesAgo: 2 },
    {
      title: "Mirror the design tokens",
      status: "queued",
      repositories: [web],
      requestedBy: noor,
      minutesAgo: 1,
      retry: { reason: "The forge did not answer: 503 Service Unavailable.", code: "forge_unavailable", inMinutes: 4 },
    },
    {
      labels: ["payments"],
      title: "Explain the retry logic of the payment client in a comment, and link the incident it came from",
      status: "completed",
      repositories: [shop],
      requestedBy: noor,
      minutesAgo: 95,
      pullRequest: { number: 480, state: "open" },
      spentUsd: 0.19,
    },
  ];
}
