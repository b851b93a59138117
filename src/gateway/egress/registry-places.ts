import { canonicalHost } from "../../domain/environments/egress.ts";

/** A private package registry, and the credential that requests to it get. */
export interface RegistryRoute {
  readonly id: string;
  /** Its address, `https:`, which ends with `/`: everything below it gets the credential. */
  readonly url: string;
  /** Further addresses at its host that get it; a part `*` of their paths stands for any one. */
  readonly also?: readonly string[];
  /** Whether its `config.json` says where its files are (Cargo's `dl`): at its own host, these get the credential too. */
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

/** What a URL's path has below a place; null if it is not there. */
export function below({ path }: RegistryPlace, { pathname }: URL): string | null {
  const [wanted, parts] = [path.slice(0, -1).split("/"), pathname.split("/")];
  const fits =
    parts.length > wanted.length &&
    wanted.every((part, at) => part === parts[at] || (part === "*" && parts[at] !== ""));
  return fits ? parts.slice(wanted.length).join("/") : null;
}

/**
 * Where an index of Cargo says that crates are: the part of `dl` that is before what stands for a crate, to its last `/`
 * (https://doc.rust-lang.org/cargo/reference/registry-index.html#index-configuration). Null if it says nothing that can be used.
 */
function filesIn(index: string): URL | null {
  let dl: unknown;
  try {
    ({ dl } = JSON.parse(index) as { dl?: unknown });
  } catch {
    return null;
  }
  if (typeof dl !== "string") return null;
  const [fixed = ""] = dl.split("{");
  // Without a mark the tool appends the crate's name and version.
  const url = URL.parse(fixed === dl ? `${dl.replace(/\/$/u, "")}/` : fixed.replace(/[^/]*$/u, ""));
  return url?.protocol === "https:" ? url : null;
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
  /** Takes from what a registry says of its files where they are, if that is at its own host. What it said last counts. */
  note(place: RegistryPlace, index: string): void;
}

/** Creates the places of routes. */
export function createRegistryPlaces(routes: readonly RegistryRoute[]): RegistryPlaces {
  const places = routes.flatMap((route) =>
    [route.url, ...(route.also ?? [])].map((address) => placeAt(route, address)),
  );
  const isOwn = ({ route, url }: RegistryPlace): boolean => url.href === route.url;
  // Of registries at one host, the longest address that fits counts.
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
    isIndex: (place, url) => place.route.namesFiles === true && isOwn(place) && below(place, url) === "config.json",
    note({ route, url }, index) {
      const files = filesIn(index);
      if (files === null || comparableHost(files) !== comparableHost(url) || portOf(files) !== portOf(url)) return;
      const old = places.findIndex((place) => place.route === route && place.isNoted);
      if (old !== -1) places.splice(old, 1);
      places.push({ ...placeAt(route, files.href), isNoted: true });
    },
  };
}

/** The host of an address in the one form that hosts are compared in. */
export const comparableHost = ({ hostname }: URL): string => canonicalHost(hostname) ?? hostname;

/** The port of an address, of https if it names none. */
export const portOf = ({ port }: URL): number => Number(port) || 443;
