import { expect, it } from "vitest";
import { createRegistryPlaces, type RegistryRoute } from "./registry-places.ts";

const route: RegistryRoute = {
  id: "feed",
  url: "https://pkgs.example.com/acme/_packaging/feed/nuget/v3/",
  namesFiles: true,
  scope: null,
  authorization: "Basic x",
  mayBePrivate: false,
};
const at = (path: string): URL => new URL(path, "https://pkgs.example.com/");

/** The places once NuGet's index has named these addresses. */
function saying(...addresses: unknown[]) {
  const places = createRegistryPlaces([route]);
  const own = places.byId("feed");
  const say = (...resources: unknown[]): void => {
    if (own !== undefined) places.note(own, JSON.stringify({ resources: resources.map((id) => ({ "@id": id })) }));
  };
  say(...addresses);
  return {
    say,
    has: (url: URL): boolean => places.placeOf(url) !== null,
    isIndex: own && places.isIndex(own, at(`${route.url}index.json`)),
  };
}

it("takes from NuGet's index where packages are, at its own host alone", () => {
  const { has, isIndex } = saying(
    "https://pkgs.example.com/acme/1f/_packaging/2e/nuget/v3/flat2/",
    "https://pkgs.example.com/acme/1f/_packaging/2e/nuget/v3/query2",
    "https://cdn.example.com/files/",
    "http://pkgs.example.com/clear/",
    7,
  );
  expect(isIndex).toBe(true);
  expect(has(at("/acme/1f/_packaging/2e/nuget/v3/flat2/a/index.json"))).toBe(true);
  expect(has(at("/acme/1f/_packaging/2e/nuget/v3/query2/x"))).toBe(true);
  expect(has(at("/acme/1f/_packaging/2e/nuget/v3/other/x"))).toBe(false);
  expect(has(at("/clear/x"))).toBe(false);
  expect(has(new URL("https://cdn.example.com/files/x"))).toBe(false);
});

it("forgets what an index said before, and takes no more than an index needs", () => {
  const { has, say } = saying("https://pkgs.example.com/first/");
  expect(has(at("/first/x"))).toBe(true);
  say(...Array.from({ length: 10_000 }, (_, index) => `https://pkgs.example.com/p${index}/`));
  expect([has(at("/first/x")), has(at("/p0/x")), has(at("/p9999/x"))]).toEqual([false, true, false]);
});
