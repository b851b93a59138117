import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { InvalidInputError, NotFoundError, UnavailableError } from "../../src/domain/errors/errors.ts";
import { parseRepositoryUrl, type RepositoryAddress } from "../../src/domain/repositories/repository.ts";
import type { ForgeSettings } from "../../src/forges/forge.ts";
import { createForges } from "../../src/forges/forges.ts";
import { createForgeChoices } from "../../src/server/browse-forges.ts";
import { asAzure } from "../forge/azure-url.ts";
import { createTestApp } from "../forge/github-app.ts";
import { startForge, type TestForge } from "../forge/server.ts";
import { hangTimeoutMs } from "../hang-timeout.ts";

let server: TestForge;
const signal = (): AbortSignal => AbortSignal.timeout(hangTimeoutMs);
const files = {
  "readme.md": "a\n",
  "src/main.ts": "a\n",
  "src/pages/home page.ts": "a\n",
  "src/pages/größe.ts": "a\n",
  "test/main.test.ts": "a\n",
};
const app = createTestApp(9);

beforeAll(async () => {
  server = await startForge();
  await server.createRepository("acme", "shop", files);
  await server.createRepository("acme", "shop-tools", { a: "a\n" });
  await server.createRepository("other", "workshop", { a: "a\n" });
  for (const branch of ["release/1.0", "release/2.0", "fix/größe"])
    await server.commit("acme", "shop", branch, { b: "b\n" });
});
afterEach(() => server.limitTrees(100_000));
afterAll(() => server?.close());

const settingsOf = (kind: string, owner = ""): ForgeSettings => {
  const below = owner === "" ? "" : `/${owner}`;
  const { token } = server;
  const apis: Readonly<Record<string, string>> = {
    azure: "",
    github: "/api/v3",
    gitlab: "/api/v4",
    gitea: "/api/v1",
    bitbucket: "/2.0",
    bitbucketDataCenter: "/rest/api/latest",
  };
  const path = kind === "bitbucketDataCenter" && owner !== "" ? `/scm/${owner}` : below;
  return { kind, webUrl: `${server.url}${path}`, apiUrl: `${server.url}${apis[kind]}`, token } as ForgeSettings;
};

const kinds = ["github", "gitlab", "gitea", "bitbucket", "bitbucketDataCenter", "azure"] as const;

/** The forge of a kind, one owner's if it lists no more, and a repository there. */
function forge(kind: (typeof kinds)[number], owner = kind === "azure" ? "acme" : "") {
  const forges = createForges([settingsOf(kind, owner)]);
  const url = `${server.url}/acme/shop`;
  const spelt =
    kind === "azure" ? asAzure(url) : kind === "bitbucketDataCenter" ? `${server.url}/scm/acme/shop.git` : url;
  const address = parseRepositoryUrl(spelt) as RepositoryAddress;
  return { forges, address, browse: forges.forgeOf(address).browse, within: forges.forgeOf(address).within ?? "" };
}

describe.each(kinds)("%s is looked through:", (kind) => {
  test("repositories by a part of their names, each with an address that leads to it", async () => {
    const { browse, within, forges } = forge(kind);
    const found = await browse?.repositories(within, "SHOP", signal());
    const names = found?.items.map(({ name }) => name.toLowerCase()).toSorted();
    const all = ["acme/shop", "acme/shop-tools", ...(kind === "azure" ? [] : ["other/workshop"])];
    expect(names).toEqual(kind === "azure" ? ["acme/shop-tools/shop-tools", "acme/shop/shop"] : all);
    expect(found?.isComplete).toBe(true);
    for (const { url } of found?.items ?? []) {
      const address = parseRepositoryUrl(url) as RepositoryAddress;
      expect([url, new URL(url).username, forges.forgeOf(address).kind]).toEqual([url, "", kind]);
      expect(await forges.forgeOf(address).readAccess(address, "main", signal())).not.toBeNull();
    }
    expect((await browse?.repositories(within, "nothing-like-it", signal()))?.items).toEqual([]);
  });

  test("those of one owner, if the forge's address is that owner's", async () => {
    const { browse, within } = forge(kind, "acme");
    const found = await browse?.repositories(within, "shop", signal());
    expect(found?.items.map(({ name }) => name.split("/").at(-1)).toSorted()).toEqual(["shop", "shop-tools"]);
  });

  test("branches by a part of their names", async () => {
    const { browse, address } = forge(kind);
    const all = await browse?.branches(address, "", signal());
    expect([all?.items.toSorted(), all?.isComplete]).toEqual([
      ["fix/größe", "main", "release/1.0", "release/2.0"],
      true,
    ]);
    expect((await browse?.branches(address, "ease/2", signal()))?.items).toEqual(["release/2.0"]);
    expect((await browse?.branches(address, "größ", signal()))?.items).toEqual(["fix/größe"]);
  });

  test("files of a branch, those of a folder too, and none of what is not there", async () => {
    const { browse, address } = forge(kind);
    const whole = await browse?.files(address, "release/1.0", "", signal());
    expect([whole?.items.toSorted(), whole?.isComplete]).toEqual([[...Object.keys(files), "b"].toSorted(), true]);
    const below = await browse?.files(address, "main", "src/pages", signal());
    expect(below?.items.toSorted()).toEqual(["src/pages/größe.ts", "src/pages/home page.ts"]);
    expect((await browse?.files(address, "main", "nowhere", signal()))?.items).toEqual([]);
  });

  test("a repository that is not there is an error, or has nothing", async () => {
    const { browse } = forge(kind);
    const url = `${server.url}/acme/not-there`;
    const address = parseRepositoryUrl(kind === "azure" ? asAzure(url) : url) as RepositoryAddress;
    const branches = await browse?.branches(address, "", signal()).catch((error: unknown) => error);
    expect(branches).toMatchObject(kind === "azure" ? { items: [] } : { code: "repository_not_found" });
  });
});

test("Gitea is read to the last page, whatever size an administrator allows pages", async () => {
  const { browse, within, address } = forge("gitea");
  server.limitPages(2);
  try {
    const found = await browse?.repositories(within, "shop", signal());
    expect([found?.items.length, found?.isComplete]).toEqual([3, true]);
    const branches = await browse?.branches(address, "", signal());
    expect([branches?.items.length, branches?.isComplete]).toEqual([4, true]);
  } finally {
    server.limitPages(50);
  }
});

test("an App of GitHub shows the repositories of its installations", async () => {
  server.registerApp({ ...app, installations: [{ account: "acme" }] });
  const { token: _token, ...settings } = settingsOf("github") as Extract<ForgeSettings, { kind: "github" }>;
  const forges = createForges([{ ...settings, app: { id: String(app.id), privateKey: app.privateKey } }]);
  const found = await forges.browsable[0]?.browse?.repositories("acme", "tools", signal());
  expect(found?.items.map(({ name }) => name)).toEqual(["acme/shop-tools"]);
});

describe("what people choose from", () => {
  const here = (kind: (typeof kinds)[number], now: () => number = Date.now) => {
    const { forges, address } = forge(kind);
    const own = { ...forges, secrets: () => [] };
    return { address, choices: createForgeChoices({ forges: { of: () => Promise.resolve(own) }, now }) };
  };

  test("is asked of the forge once for a while, however many ask, and again later", async () => {
    let time = 0;
    const { choices, address } = here("gitlab", () => time);
    const before = server.asked().length;
    const asks = Array.from({ length: 5 }, () => choices.branches("o", address, "release"));
    for (const found of await Promise.all(asks)) {
      expect(found).toEqual({ branches: ["release/1.0", "release/2.0"], complete: true });
    }
    expect(server.asked().length - before).toBe(1);
    time = 19_999;
    await choices.branches("o", address, "release");
    expect(server.asked().length - before).toBe(1);
    time = 20_000;
    await choices.branches("o", address, "release");
    // Of another organization nothing is known: its credential may see less.
    await choices.branches("other", address, "release");
    expect(server.asked().length - before).toBe(3);
  });

  test("leaves a forge alone that says how long, and asks it again then", async () => {
    let time = 0;
    const { choices, address } = here("github", () => time);
    await server.failNext({ kind: "secondaryLimit", retryAfterSeconds: 60 });
    const before = server.asked().length;
    const refused = await choices.branches("o", address, "").catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(UnavailableError);
    expect((refused as UnavailableError).retryAfterMs).toBe(60_000);
    const again = await choices.files("o", address, { branch: "main", query: "" }).catch((error: unknown) => error);
    expect(again).toBeInstanceOf(UnavailableError);
    expect((await choices.repositories("o", "shop")).problems).toHaveLength(1);
    expect(server.asked().length - before).toBe(1);
    time = 61_000;
    expect((await choices.branches("o", address, "")).branches).toContain("main");
  });

  test("offers what begins with the words first", async () => {
    const { choices, address } = here("gitea");
    const { paths } = await choices.files("o", address, { branch: "main", query: "main" });
    expect(paths).toEqual(["src/main.ts", "test/main.test.ts"]);
    const { repositories } = await choices.repositories("o", "shop");
    expect(repositories).toHaveLength(3);
  });

  test.each(["github", "gitea", "bitbucketDataCenter"] as const)(
    "of a tree of %s that is too large finds what is below the folder that is written",
    async (kind) => {
      server.limitTrees(1);
      const { choices, address } = here(kind);
      const top = await choices.files("o", address, { branch: "main", query: "home" });
      const below = await choices.files("o", address, { branch: "main", query: "src/pages/ho" });
      expect(below.paths).toEqual(["src/pages/home page.ts"]);
      // GitHub says by itself that a tree is not whole; the others are asked folder by folder.
      expect(top).toMatchObject(kind === "github" ? { paths: [], complete: false } : {});
    },
  );

  test("is an error of the API as the forge refuses", async () => {
    const { choices } = here("github");
    const missing = parseRepositoryUrl(`${server.url}/acme/not-there`) as RepositoryAddress;
    await expect(choices.branches("o", missing, "")).rejects.toBeInstanceOf(NotFoundError);
    const stranger = parseRepositoryUrl("https://elsewhere.example/a/b") as RepositoryAddress;
    await expect(choices.branches("o", stranger, "")).rejects.toBeInstanceOf(InvalidInputError);
    const wrong = createForges([{ ...settingsOf("github"), token: "wrong" }]);
    const refused = createForgeChoices({ forges: { of: () => Promise.resolve({ ...wrong, secrets: () => [] }) } });
    const { problems } = await refused.repositories("o", "");
    expect(problems).toMatchObject([{ text: expect.stringContaining("refused the configured token") as string }]);
    expect(JSON.stringify(problems)).not.toContain(server.token);
  });
});
