import { canonicalHost } from "../../domain/environments/egress.ts";

/** A private package registry, and the credential that requests to it get. */
export interface RegistryRoute {
  readonly id: string;
  /** Its address, `https:`, which ends with `/`: everything below it gets the credential. */
  readonly url: string;
  /** Further addresses at its host that get it; a part `*` of their paths stands for any one. */
  readonly also?: readonly string[];
  /**
   * Whether its index says where its files are, which then get the credential too, at its own host: Cargo's `config.json`, or
   * NuGet's `index.json`.
   */
  readonly namesFiles?: boolean;
  /** The scope of npm that comes from it, such as `@acme`: several of a host may have the same address; null for all else. */
  readonly scope: string | null;
  /** Content of the header `Authorization`. */
  readonly authorization: string;
  /** Whether the operator allows its host to be in a private network. */
  readonly mayBePrivate: boolean;
}

/** An address whose paths get a registry's credential. */
export interface RegistryPlace {
  readonly route: RegistryRoute;
  readonly url: URL;
  /** The address's path, in which a part `*` stands for any one. */
  readonly path: string;
  /** Whether the registry itself said it. */
  readonly isNoted: boolean;
}

function placeAt(route: RegistryRoute, address: string): RegistryPlace {
  const url = new URL(address);
  return { route, url, path: url.pathname, isNoted: false };
}

/** The part of a URL's path below a place; null if it is not below. */
export function below({ path }: RegistryPlace, { pathname }: URL): string | null {
  const [wanted, parts] = [path.slice(0, -1).split("/"), pathname.split("/")];
  const fits =
    parts.length > wanted.length &&
    wanted.every((part, at) => part === parts[at] || (part === "*" && parts[at] !== ""));
  return fits ? parts.slice(wanted.length).join("/") : null;
}

/** The files that are such an index: no crate and no package has these names right below a registry's address. */
const indexes: ReadonlySet<string | null> = new Set(["config.json", "index.json"]);
/** Most addresses that are taken from one: NuGet's own names some 40, most of them more than once. */
const mostFiles = 100;

/**
 * The addresses at which an index says that files are, without invalid ones.
 * - Cargo: the part of `dl` before the placeholder for a crate, to its last `/`
 *   (https://doc.rust-lang.org/cargo/reference/registry-index.html#index-configuration)
 * - NuGet: the address of each resource (https://learn.microsoft.com/nuget/api/service-index)
 */
function filesIn(index: string): URL[] {
  let said: { dl?: unknown; resources?: unknown } | null;
  try {
    said = JSON.parse(index) as typeof said;
  } catch {
    return [];
  }
  const { dl, resources } = said ?? {};
  const named = Array.isArray(resources)
    ? (resources as ({ "@id"?: unknown } | null)[]).map((resource) => resource?.["@id"])
    : [dl];
  const addresses = new Set(named.filter((each) => typeof each === "string").map(folderOf));
  const urls = [...addresses].slice(0, mostFiles).map((address) => URL.parse(address));
  return urls.filter((url) => url?.protocol === "https:") as URL[];
}

function folderOf(address: string): string {
  const [fixed = ""] = address.split("{");
  // Without a mark the tool appends the name and version.
  return fixed === address ? `${address.replace(/\/$/u, "")}/` : fixed.replace(/[^/]*$/u, "");
}

/** The places of private registries: which of their credentials a request gets. */
export interface RegistryPlaces {
  has(host: string, port: number): boolean;
  /** The place that an address belongs to; null if to none. */
  placeOf(url: URL): RegistryPlace | null;
  /** A registry's own address; undefined if there is no such registry. */
  byId(id: string): RegistryPlace | undefined;
  /** Whether a request is for what a registry says of its files. */
  isIndex(place: RegistryPlace, url: URL): boolean;
  /** Takes from what a registry says of its files where they are, as far as that is at its own host. What it said last counts. */
  note(place: RegistryPlace, index: string): void;
}

/** Creates the places of routes. */
export function createRegistryPlaces(routes: readonly RegistryRoute[]): RegistryPlaces {
  const places = routes.flatMap((route) =>
    [route.url, ...(route.also ?? [])].map((address) => placeAt(route, address)),
  );
  const isOwn = ({ route, url }: RegistryPlace): boolean => url.href === route.url;
  // If several registries are at one host, the longest matching address counts.
  const at = (host: string, port: number) =>
    places
      .filter(({ url }) => comparableHost(url) === host && portOf(url) === port)
      .toSorted((a, b) => b.path.length - a.path.length);
  return {
    has: (host, port) => at(host, port).length > 0,
    placeOf(url) {
      const fitting = at(comparableHost(url), portOf(url)).filter((place) => below(place, url) !== null);
      const [first] = fitting;
      if (first === undefined) return null;
      const same = fitting.filter((place) => place.path === first.path);
      // GitHub has one address for the packages of all owners, and their archives below `download/`.
      const scope = /(?:^|\/)(@[^/%]+)(?:\/|%2f)/iu.exec(below(first, url) ?? "")?.[1]?.toLowerCase() ?? null;
      return same.find(({ route }) => route.scope === scope) ?? same.find(({ route }) => route.scope === null) ?? first;
    },
    byId: (id) => places.find((place) => place.route.id === id && isOwn(place)),
    isIndex: (place, url) => place.route.namesFiles === true && isOwn(place) && indexes.has(below(place, url)),
    note({ route, url }, index) {
      const files = filesIn(index).filter(
        (each) => comparableHost(each) === comparableHost(url) && portOf(each) === portOf(url),
      );
      if (files.length === 0) return;
      const others = places.filter((place) => place.route !== route || !place.isNoted);
      places.splice(0, places.length, ...others);
      places.push(...files.map(({ href }) => ({ ...placeAt(route, href), isNoted: true })));
    },
  };
}

/** The host of an address in the one form that hosts are compared in. */
export const comparableHost = ({ hostname }: URL): string => canonicalHost(hostname) ?? hostname;

/** The port of an address, of https if it names none. */
export const portOf = ({ port }: URL): number => Number(port) || 443;
