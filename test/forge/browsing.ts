import { execFileSync } from "node:child_process";
import type { Answer, ApiRequest } from "./api-request.ts";
import { azureNamesOf, azurePathIn } from "./azure-places.ts";
import { azureRefShape, repositoryShape as azureRepositoryShape } from "./azure-shapes.ts";
import { bitbucketRepositoryShape } from "./bitbucket-shapes.ts";
import { bareOf } from "./commits.ts";
import { dataCenterRepositoryShape } from "./data-center-shapes.ts";
import { giteaPage } from "./gitea-api.ts";
import { giteaRepositoryShape } from "./gitea-shapes.ts";
import { fullRepositoryShape } from "./github-shapes.ts";
import { projectShape } from "./gitlab-shapes.ts";
import { gitEnvironment, type ForgeState, type Place } from "./state.ts";

// What each forge answers to those who look through it: repositories, branches, files. What it says is read from the repositories.

interface Asked {
  readonly state: ForgeState;
  readonly request: ApiRequest;
}

type Look = (asked: Asked) => Answer | null;

const has = (name: string, words: string | null): boolean => name.toLowerCase().includes((words ?? "").toLowerCase());

function placesOf(state: ForgeState): Place[] {
  return [...state.pulls.keys()].map((key) => {
    const [, owner = "", name = ""] = /^(.+)\/([^/]+)$/u.exec(key) ?? [];
    return { webUrl: state.url, owner, name };
  });
}

const factsOf = (state: ForgeState, { owner, name }: Place) => state.facts.get(`${owner}/${name}`) ?? {};

const branchesOf = ({ state, request }: Asked): [string, string][] => [...state.refs.all(bareOf(state, request.place))];

/** Files at a branch or commit; null: there is no such branch. */
function filesOf({ state, request }: Asked, at: string, folder: string): string[] | null {
  try {
    const tree = folder === "" ? at : `${at}:${folder}`;
    const output = execFileSync(
      "git",
      ["-C", bareOf(state, request.place), "ls-tree", "-r", "-z", "--name-only", tree],
      {
        env: gitEnvironment,
        encoding: "utf8",
        stdio: ["ignore", "pipe", "ignore"],
        maxBuffer: 64 * 1024 ** 2,
      },
    );
    return output.split("\0").filter((name) => name !== "");
  } catch {
    return null;
  }
}

interface Paging {
  readonly size: string;
  readonly usual: number;
  readonly most: number;
}

/** @returns the page, and whether it is the last */
function page<Item>({ query }: ApiRequest, items: readonly Item[], { size, usual, most }: Paging) {
  const count = Math.min(Number(query.get(size) ?? usual), most);
  const start = query.has("start") ? Number(query.get("start")) : (Number(query.get("page") ?? 1) - 1) * count;
  return { items: items.slice(start, start + count), isLast: start + count >= items.length };
}

const ok = (body: unknown): Answer => ({ status: 200, body });
const notFound = (body: unknown): Answer => ({ status: 404, body });

const github: Look = (asked) => {
  const { state, request } = asked;
  const { path, query, place } = request;
  const paging = { size: "per_page", usual: 30, most: 100 };
  const shapes = (places: readonly Place[]) => places.map((each) => fullRepositoryShape(each, factsOf(state, each)));
  if (path === "user/repos") return ok(page(request, shapes(placesOf(state)), paging).items);
  if (path === "installation/repositories") {
    const all = placesOf(state);
    return ok({ total_count: all.length, repositories: page(request, shapes(all), paging).items });
  }
  if (path === "search/repositories") {
    const words = (query.get("q") ?? "").split(" ");
    const users = new Set(words.flatMap((word) => (word.startsWith("user:") ? [word.slice("user:".length)] : [])));
    const name = words.filter((word) => !word.includes(":")).join(" ");
    const found = placesOf(state).filter((each) => has(each.name, name) && users.has(each.owner));
    return ok({
      total_count: found.length,
      incomplete_results: false,
      items: page(request, shapes(found), paging).items,
    });
  }
  const commit = (sha: string) => ({
    sha,
    url: `${state.url}/api/v3/repos/${place.owner}/${place.name}/commits/${sha}`,
  });
  if (path === "/branches") {
    const shown = branchesOf(asked).map(([name, sha]) => ({ name, commit: commit(sha), protected: false }));
    return ok(page(request, shown, paging).items);
  }
  const [, prefix] = /^\/git\/matching-refs\/heads\/(.*)$/u.exec(path) ?? [];
  if (prefix !== undefined) {
    const found = branchesOf(asked).filter(([name]) => name.startsWith(decodeURIComponent(prefix)));
    return ok(
      found.map(([name, sha]) => ({
        ref: `refs/heads/${name}`,
        node_id: "n",
        url: "",
        object: { type: "commit", sha, url: "" },
      })),
    );
  }
  const [, branch] = /^\/git\/trees\/(.*)$/u.exec(path) ?? [];
  if (branch !== undefined) {
    const files = filesOf(asked, decodeURIComponent(branch), "");
    if (files === null) return notFound({ message: "Not Found", documentation_url: "", status: "404" });
    const shown = files.slice(0, state.treeLimit);
    const tree = shown.map((name) => ({ path: name, mode: "100644", type: "blob", sha: "0".repeat(40), size: 1 }));
    return ok({
      sha: "0".repeat(40),
      tree: [{ path: "a-folder", mode: "040000", type: "tree" }, ...tree],
      truncated: shown.length < files.length,
    });
  }
  const [, folder] = /^\/contents\/(.*)$/u.exec(path) ?? [];
  if (folder === undefined) return null;
  const below = filesOf(asked, query.get("ref") ?? "", decodeURIComponent(folder));
  if (below === null) return notFound({ message: "Not Found", documentation_url: "", status: "404" });
  return ok(
    below
      .filter((name) => !name.includes("/"))
      .map((name) => ({ type: "file", name, path: `${decodeURIComponent(folder)}/${name}` })),
  );
};

const gitlab: Look = (asked) => {
  const { state, request } = asked;
  const { path, query } = request;
  const paging = { size: "per_page", usual: 20, most: 100 };
  const [, group] = /^groups\/([^/]+)\/projects$/u.exec(path) ?? [];
  if (path === "projects" || group !== undefined) {
    const owner = group === undefined ? null : decodeURIComponent(group);
    const found = placesOf(state).filter(
      (each) =>
        (owner === null || each.owner === owner || each.owner.startsWith(`${owner}/`)) &&
        has(`${each.owner}/${each.name}`, query.get("search")),
    );
    return ok(
      page(request, found, paging).items.map((each) =>
        projectShape(each, 1, factsOf(state, each), { importStatus: "none", isFull: false }),
      ),
    );
  }
  if (path === "/repository/branches") {
    const found = branchesOf(asked).filter(([name]) => has(name, query.get("search")));
    return ok(page(request, found, paging).items.map(([name]) => ({ name, merged: false, protected: false })));
  }
  if (path !== "/repository/tree") return null;
  const folder = query.get("path") ?? "";
  const files = filesOf(asked, query.get("ref") ?? "", folder);
  if (files === null) return notFound({ message: "404 Tree Not Found" });
  const below = folder === "" ? "" : `${folder}/`;
  const shown = [{ type: "tree", path: "a-folder" }, ...files.map((name) => ({ type: "blob", path: below + name }))];
  return ok(page(request, shown, paging).items.map((each) => ({ id: "0", name: each.path, mode: "100644", ...each })));
};

const gitea: Look = (asked) => {
  const { state, request } = asked;
  const { path, query } = request;
  if (path === "repos/search") {
    const found = placesOf(state).filter((each) => has(each.name, query.get("q")));
    const { items, headers } = giteaPage(state, request, found);
    const data = items.map((each) => giteaRepositoryShape(each, factsOf(state, each)));
    return { status: 200, headers, body: { ok: true, data } };
  }
  if (path === "/branches") {
    const { items, headers } = giteaPage(state, request, branchesOf(asked));
    return {
      status: 200,
      headers,
      body: items.map(([name, sha]) => ({ name, commit: { id: sha }, protected: false })),
    };
  }
  const [, at] = /^\/git\/trees\/(.*)$/u.exec(path) ?? [];
  if (at === undefined) return null;
  const [branch = "", folder = ""] = decodeURIComponent(at).split(":");
  const files = filesOf(asked, branch, folder);
  if (files === null) return notFound({ message: "object does not exist", url: "" });
  const { items, isLast } = page(request, files, {
    size: "per_page",
    usual: 1_000,
    most: Math.min(1_000, state.treeLimit),
  });
  const tree = items.map((name) => ({ path: name, mode: "100644", type: "blob", size: 1, sha: "0", url: "" }));
  return ok({
    sha: "0",
    url: "",
    tree: [...tree, { path: "a-folder", type: "tree" }],
    truncated: !isLast,
    page: 1,
    total_count: files.length,
  });
};

const bitbucket: Look = (asked) => {
  const { state, request } = asked;
  const { path, query } = request;
  const paging = { size: "pagelen", usual: 10, most: 100 };
  const words = /^name ~ "(.*)"$/u.exec(query.get("q") ?? "")?.[1] ?? null;
  const paged = <Item>(items: readonly Item[], shape: (item: Item) => unknown): Answer => {
    const { items: shown, isLast } = page(request, items, paging);
    return ok({
      pagelen: 100,
      values: shown.map(shape),
      ...(!isLast && { next: `${state.url}/2.0/${path}?page=next` }),
    });
  };
  if (path === "user/workspaces") {
    const owners = [...new Set(placesOf(state).map(({ owner }) => owner))];
    return paged(owners, (slug) => ({ type: "workspace_access", workspace: { type: "workspace_base", slug } }));
  }
  const [, workspace] = /^repositories\/([^/]+)$/u.exec(path) ?? [];
  if (workspace !== undefined) {
    const found = placesOf(state).filter(
      ({ owner, name }) => owner === decodeURIComponent(workspace) && has(name, words),
    );
    return paged(found, (each) => {
      const href = `${state.url.replace("://", "://someone@")}/${each.owner}/${each.name}.git`;
      const clone = [
        { name: "https", href },
        { name: "ssh", href: "git@host:x.git" },
      ];
      return { ...bitbucketRepositoryShape(each, factsOf(state, each)), links: { clone } };
    });
  }
  if (path === "/refs/branches" && query.has("pagelen")) {
    return paged(
      branchesOf(asked).filter(([name]) => has(name, words)),
      ([name, hash]) => ({ type: "branch", name, target: { type: "commit", hash } }),
    );
  }
  const [, one] = /^\/refs\/branches\/(.+)$/u.exec(path) ?? [];
  if (one !== undefined) {
    const found = branchesOf(asked).find(([name]) => name === decodeURIComponent(one));
    if (found === undefined) return notFound({ type: "error", error: { message: "Branch not found" } });
    return ok({ type: "branch", name: found[0], target: { type: "commit", hash: found[1] } });
  }
  const [, sha, below = ""] = /^\/src\/([0-9a-f]{40})\/(.*?)\/?$/u.exec(path) ?? [];
  if (sha === undefined) return null;
  const folder = decodeURIComponent(below);
  const files = filesOf(asked, sha, folder);
  if (files === null) return notFound({ type: "error", error: { message: "No such file or directory" } });
  const prefix = folder === "" ? "" : `${folder}/`;
  const entries = [
    { type: "commit_directory", path: "a-folder" },
    ...files.map((name) => ({ type: "commit_file", path: prefix + name })),
  ];
  return paged(entries, (entry) => entry);
};

const bitbucketDataCenter: Look = (asked) => {
  const { state, request } = asked;
  const { path, query } = request;
  const paged = <Item>(items: readonly Item[], most: number, shape: (item: Item) => unknown): Answer => {
    const { items: shown, isLast } = page(request, items, { size: "limit", usual: 25, most });
    const start = Number(query.get("start") ?? 0);
    const paging = { isLastPage: isLast, nextPageStart: isLast ? null : start + shown.length };
    return ok({ size: shown.length, limit: most, start, ...paging, values: shown.map(shape) });
  };
  if (path === "api/latest/repos" && !query.has("permission")) {
    const found = placesOf(state).filter(
      ({ owner, name }) =>
        has(name, query.get("name")) && (!query.has("projectkey") || query.get("projectkey") === owner),
    );
    return paged(found, 1_000, (each) => dataCenterRepositoryShape(each, factsOf(state, each)));
  }
  if (path === "/branches" && !query.has("base")) {
    const found = branchesOf(asked).filter(([name]) => has(name, query.get("filterText")));
    return paged(found, 1_000, ([name, sha]) => ({
      id: `refs/heads/${name}`,
      displayId: name,
      type: "BRANCH",
      latestCommit: sha,
    }));
  }
  const [, below] = /^\/files(?:\/(.*))?$/u.exec(path) ?? [];
  if (!path.startsWith("/files")) return null;
  const files = filesOf(asked, query.get("at") ?? "", decodeURIComponent(below ?? ""));
  if (files === null) return notFound({ errors: [{ message: "The path does not exist." }] });
  return paged(files, Math.min(1_000, state.treeLimit), (name) => name);
};

/** By the forge's kind. Null: the request is about something else. */
export const answersToLooks = { github, gitlab, gitea, bitbucket, bitbucketDataCenter } as const;

/** The same of Azure DevOps, whose lists of repositories are those of a collection or a project. */
export function answerLookOfAzure(state: ForgeState, pathname: string, request: ApiRequest): Answer | null {
  const list = (value: readonly unknown[]): Answer => ok({ count: value.length, value });
  const { collection, project, names } = azurePathIn(pathname);
  const { path, query, place } = request;
  if (names === null && path === "git/repositories" && request.method === "GET") {
    const found = placesOf(state).filter((each) => {
      const own = azureNamesOf(state, each);
      return own.collection === collection && (project === null || own.project === project);
    });
    return list(found.map((each) => azureRepositoryShape(state, each, false)));
  }
  if (path === "/refs" && query.get("filter") === "heads/") {
    const found = branchesOf({ state, request }).filter(([name]) => has(name, query.get("filterContains")));
    const shown = found.slice(0, Number(query.get("$top") ?? 100));
    return list(shown.map(([name, sha]) => azureRefShape(state, place, name, sha)));
  }
  if (path !== "/items" || query.get("recursionLevel") !== "Full") return null;
  const folder = (query.get("scopePath") ?? "/").slice(1);
  const files = filesOf({ state, request }, query.get("versionDescriptor.version") ?? "", folder);
  if (files === null) return notFound({ $id: "1", message: "TF401174: The item could not be found." });
  const prefix = folder === "" ? "/" : `/${folder}/`;
  return list([
    { objectId: "0", gitObjectType: "tree", isFolder: true, path: prefix },
    ...files.map((name) => ({ objectId: "0", gitObjectType: "blob", path: prefix + name })),
  ]);
}
